// The page of the example web services in three tabs of a browser. Two servers serve them from one file.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const cwd = fileURLToPath(new URL("../..", import.meta.url));
const cargo = ["-p", "flatwater-example-axum", "--quiet"];
const uvicorn = ["--app-dir", "examples/python/web", "tasks:app", "--workers", "2", "--port", "0", "--timeout-graceful-shutdown", "1"];

/** The command that builds a service, and the one that starts a server of it on a file. */
const services = {
  axum: [["cargo", "build", ...cargo], (file) => ["cargo", "run", ...cargo, "--", file, "127.0.0.1:0"]],
  Fastify: [["make", "--silent", "node-example"], (file) => ["env", `TASKS_DB=${file}`, "PORT=0", "node", "examples/node/web/tasks.mjs"]],
  FastAPI: [["make", "--silent", "python-package"], (file) => ["env", `TASKS_DB=${file}`, "python/.venv/bin/python", "-m", "uvicorn", ...uvicorn]],
};

/** Starts a server and waits until it answers at the address that it says. Its output is shown if the test fails. */
async function started(t, [command, ...options]) {
  const child = spawn(command, options, { cwd, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const output of [child.stdout, child.stderr]) output.setEncoding("utf8").on("data", (text) => (said += text));
  const ended = once(child, "exit").then(() => assert.fail(`a server ended: ${said}`));
  ended.catch(() => {});
  t.after(() => {
    child.kill();
    if (!t.passed) console.error(said);
  });
  const address = () => said.match(/http:..[\d.]+:\d+(?=\s)/)?.[0];
  while (!address()) await Promise.race([once(child.stdout, "data"), once(child.stderr, "data"), ended]);
  while (!(await Promise.race([fetch(address()).catch(() => null), ended])));
  return { child, address: address() };
}

/** Opens a tab. Anything on its console fails the test. */
async function opened(browser, address, complaints) {
  const tab = await browser.newPage();
  tab.on("console", (message) => complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  await tab.goto(address);
  return tab;
}

/** A change in one tab appears in all of them, whichever process serves it. */
async function follow(t, [build, start]) {
  const folder = mkdtempSync(join(tmpdir(), "tabs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  execFileSync(build[0], build.slice(1), { cwd, stdio: ["ignore", "ignore", "inherit"] });
  const command = start(join(folder, "tasks.db"));
  const [one, other] = [await started(t, command), await started(t, command)];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
  t.after(() => browser.close());

  const complaints = [];
  const addresses = [one.address, one.address, other.address];
  const tabs = await Promise.all(addresses.map((address) => opened(browser, address, complaints)));
  const [first, , third] = tabs;

  await first.getByRole("textbox").fill("buy tea");
  await first.getByRole("button", { name: "Add" }).click();
  for (const tab of tabs) await tab.getByRole("listitem").filter({ hasText: "buy tea" }).waitFor();

  // A title that is markup is shown as it is.
  await third.getByRole("textbox").fill("<b>drink tea</b>");
  await third.getByRole("button", { name: "Add" }).click();
  for (const tab of tabs) await tab.getByRole("listitem").filter({ hasText: "<b>drink tea</b>" }).waitFor();

  await third.getByRole("listitem").filter({ hasText: "buy tea" }).getByRole("button", { name: "Done" }).click();
  for (const tab of tabs) {
    await tab.getByRole("listitem").filter({ hasText: "buy tea" }).waitFor({ state: "detached" });
    assert.equal(await tab.getByRole("listitem").count(), 1);
  }
  assert.deepEqual(complaints, []);

  // Open streams do not keep a process from stopping.
  for (const { child } of [one, other]) {
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  }
}

for (const [name, service] of Object.entries(services)) {
  test(`a change in one tab appears in all of them, whichever process of ${name} serves it`, (t) => follow(t, service));
}
