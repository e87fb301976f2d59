// The page of the service in three tabs of a browser. Two processes serve them from one file.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { chromium } from "playwright-core";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const service = ["-p", "flatwater-example-axum", "--quiet"];

/** Starts a process of the service. Its first line says where it is. */
async function started(t, file) {
  const child = spawn("cargo", ["run", ...service, "--", file, "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [address] = await once(createInterface(child.stdout), "line");
  return { child, address };
}

/** Opens a tab. Anything on its console fails the test. */
async function opened(browser, address, complaints) {
  const tab = await browser.newPage();
  tab.on("console", (message) => complaints.push(message.text()));
  tab.on("pageerror", (error) => complaints.push(String(error)));
  await tab.goto(address);
  return tab;
}

test("a change in one tab appears in all of them, whichever process serves it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "tabs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  execFileSync("cargo", ["build", ...service], { stdio: ["ignore", "ignore", "inherit"] });
  const file = join(folder, "tasks.db");
  const [one, other] = [await started(t, file), await started(t, file)];
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
});
