// The site as a browser shows it: `target/book` as `make book` has left it, opened by the chromium of the system.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

// The packages of the lab's page, which is a part of the site.
const { chromium } = createRequire(new URL("../lab/web/package.json", import.meta.url))("playwright-core");
const site = new URL("../target/book/", import.meta.url);
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--allow-file-access-from-files"];

let browser;

before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: flags });
});

after(() => browser?.close());

/** A page of the site; what it says on its console as an error fails the test. */
async function open(address) {
  const page = await browser.newPage();
  const failed = [];
  page.on("pageerror", (error) => failed.push(String(error)));
  await page.goto(new URL(address, site).href);
  return { page, failed };
}

test("a word is found in the guide and in the design", async () => {
  const { page, failed } = await open("index.html");
  for (const [word, folder] of [["gunicorn", "guide/"], ["turnstile", "design/"]]) {
    await page.keyboard.press("/");
    await page.locator("#mdbook-searchbar").pressSequentially(word);
    const found = page.locator(`#mdbook-searchresults a[href*="${folder}"]`).first();
    await found.waitFor();
    await found.click();
    await page.waitForURL(new RegExp(folder));
    assert.match((await page.textContent("main")).toLowerCase(), new RegExp(word));
  }
  assert.deepEqual(failed, []);
  await page.close();
});

test("a page leads to the lab's charts", async () => {
  const { page, failed } = await open("index.html");
  await page.click('main a[href="lab.html"]');
  await page.locator("svg").first().waitFor();
  assert.match(await page.textContent("body"), /point_query/);
  assert.deepEqual(failed, []);
  await page.close();
});

test("the files for language models are there", async () => {
  const { page } = await open("llms.txt");
  assert.match(await page.textContent("body"), /^# Flatwater[^]*## Guide[^]*guide\/reading.md/);
  await page.close();
});
