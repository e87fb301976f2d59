// The page as a browser shows it: made by the tool, opened by the chromium of the system.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { ab, experiments, run } from "./fixture.mjs";

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

let folder;
let browser;
let address;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "lab-page-"));
  mkdirSync(join(folder, "experiments"));
  writeFileSync(join(folder, "run.json"), JSON.stringify(run()));
  writeFileSync(join(folder, "ab.json"), JSON.stringify(ab()));
  writeFileSync(join(folder, "experiments/index.json"), JSON.stringify(experiments()));
  const page = join(folder, "page.html");
  const words = ["run", "--quiet", "-p", "flatwater-lab", "--", "report", join(folder, "run.json"), join(folder, "ab.json"), "--experiments-dir", join(folder, "experiments"), "--out", page];
  execFileSync("cargo", words, { stdio: ["ignore", "ignore", "inherit"] });
  address = pathToFileURL(page).href;
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true });
});

/** The page at a width; anything on the console or asked of the network fails the test. */
async function opened(t, width, options = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, ...options });
  const complaints = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith("http") && complaints.push(`asked for ${request.url()}`));
  t.after(async () => {
    await page.close();
    assert.deepEqual(complaints, []);
  });
  await page.goto(address);
  await page.waitForFunction(() => {
    const frames = [...document.querySelectorAll(".frame")];
    return frames.length > 0 && frames.every((frame) => frame.querySelector("svg"));
  });
  return page;
}

test("the pace of a lane and the settings of all peers are told", async (t) => {
  const page = await opened(t, 1280);
  const told = await page.locator("p.note").allTextContents();
  assert.ok(told.some((text) => /^sustained_8k is paced at 12 k ops\/s, 0.5 of the 24 k ops\/s/.test(text)), told.join("\n"));
  assert.ok(told.some((text) => text.includes("temp_store and cache_spill")), told.join("\n"));
});

test("every lane that was measured has a drawn chart with a mark for each peer", async (t) => {
  const page = await opened(t, 1280);
  const release = await page.locator("#lanes article").count();
  assert.equal(release, run().results.reduce((names, row) => names.add(row.lane), new Set()).size - 9);
  const lane = page.locator("#lane-point_query");
  assert.equal(await lane.locator("svg").count(), 2);
  const names = await lane.locator("svg").first().textContent();
  for (const peer of ["raw", "raw-held", "mutex", "tokio-rusqlite", "sqlx", "flatwater", "py-aiosqlite"]) assert.ok(names.includes(peer), peer);
  const symbols = await lane.locator("svg").first().locator("[aria-label=dot] path").count();
  assert.equal(symbols, 7);
  assert.ok((await page.locator("#concurrency svg path").count()) >= 7);
  assert.ok((await page.locator("#lane-sustained_8k_readers svg").count()) === 3);
});

test("focused lanes come after the release lanes, when they are opened", async (t) => {
  const page = await opened(t, 1280);
  assert.equal(await page.locator("#lane-noop_execute").count(), 0);
  await page.getByText("Focused lanes (9)").click();
  await page.locator("#lane-noop_execute svg").first().waitFor();
});

test("several processes have their turns by mode and their waits by how many there are", async (t) => {
  const page = await opened(t, 1280);
  const section = page.locator("#processes");
  const charts = await section.locator("figcaption").allTextContents();
  assert.deepEqual(charts, ["Turns of each process, from the fewest to the most", ...["median", "p99", "p99.9", "longest"].map((name) => `Wait by number of processes: ${name}`)]);
  const drawn = await section.locator("svg").first().textContent();
  for (const text of ["busy-default", "busy-turnstile", "0 to 1,000", "990 to 1,000"]) assert.ok(drawn.includes(text), `${text} of ${drawn}`);
  assert.equal(await section.locator("svg").first().locator("[aria-label=dot] path").count(), 6);
  for (const chart of (await section.locator("svg").all()).slice(1)) assert.equal(await chart.locator("[aria-label=dot] path").count(), 9);
  assert.match(await section.locator("article h4").first().textContent(), /^16 processes$/);
  await section.getByText("Other settings (1)").click();
  assert.match(await section.locator("h3").textContent(), /^Held for 0 us, 0 us between turns$/);
  await section.getByText("Scenarios of the published study").click();
  const rows = await section.locator("table tbody tr").allTextContents();
  assert.ok(rows.some((row) => row === "busy-turnstile14 (8/4/2)20018001800200320" + "1"), rows.join("\n"));
});

test("a chart has a table of its figures", async (t) => {
  const page = await opened(t, 1280);
  const lane = page.locator("#lane-point_query");
  await lane.getByText("Figures", { exact: true }).click();
  await lane.locator("table").waitFor();
  const heads = await lane.locator("tbody th").allTextContents();
  for (const name of ["rate", "p50", "p99.9", "max"]) assert.ok(heads.includes(name), `${name} of ${heads}`);
});

test("whoever beats raw is named beside raw-held, and nobody else", async (t) => {
  const page = await opened(t, 1280);
  const row = (lane) => page.locator(`#overview tr:has(a[href="#lane-${lane}"])`).textContent();
  assert.match(await row("point_query"), /\u25b21\.\d+x of raw-held/);
  assert.ok(!(await row("query_10k")).includes("of raw-held"));
  assert.match(await page.locator("#lane-point_query .note").textContent(), /flatwater is 0\.\d+x of raw and 1\.\d+x of raw-held/);
  assert.equal(await page.locator("#lane-query_10k .note").count(), 0);
});

test("a quick, dirty and partial result says so first, and an error stays text", async (t) => {
  const page = await opened(t, 1280);
  for (const flag of ["quick", "dirty", "partial"]) assert.ok(await page.locator(`.head [data-flag=${flag}]`).isVisible(), flag);
  assert.ok((await page.locator("#lane-query_10k .failed").textContent()).includes("</script><b>bold</b>"));
});

test("the filter shows the experiments of one verdict", async (t) => {
  const page = await opened(t, 1280);
  const shown = () => page.locator(".experiments li h3").allTextContents();
  assert.equal((await shown()).length, 3);
  await page.getByLabel("rejected").check();
  assert.deepEqual(await shown(), ["002 A second try", "003 A third try"]);
  await page.getByLabel("accepted").check();
  assert.deepEqual(await shown(), ["001 A first try"]);
  await page.getByLabel("all").check();
  assert.equal((await shown()).length, 3);
});

test("two revisions are shown with their verdicts", async (t) => {
  const page = await opened(t, 1280);
  await page.getByLabel("Result").selectOption({ index: 1 });
  await page.locator("#verdicts svg").waitFor();
  const reasons = await page.locator(".reasons li").allTextContents();
  const of = (lane) => reasons.find((reason) => reason.startsWith(lane));
  assert.ok(of("insert_sequential").includes("rejected"), of("insert_sequential"));
  assert.ok(of("point_query").includes("accepted"), of("point_query"));
  assert.ok(of("noop_execute").includes("(guard): no effect"), of("noop_execute"));
});

for (const width of [390, 768, 1280]) {
  test(`at ${width} pixels nothing scrolls sideways, opened or closed`, async (t) => {
    const page = await opened(t, width);
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(await overflow(), 0);
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    await page.locator("#lane-noop_execute svg").first().waitFor();
    assert.equal(await overflow(), 0);
    const wide = await page.evaluate(() => [...document.querySelectorAll(".frame svg")].filter((svg) => svg.getBoundingClientRect().right > innerWidth + 1).length);
    assert.equal(wide, 0);
  });
}

test("dark is dark", async (t) => {
  const page = await opened(t, 1280, { colorScheme: "dark" });
  const colour = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.match(colour, /^rgb\((\d{1,2}), (\d{1,2}), (\d{1,2})\)$/);
});
