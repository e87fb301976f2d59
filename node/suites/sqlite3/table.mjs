// The table of the guide: how many tests of each suite pass, on its own driver and here, and which do not run here.
import { readFileSync, writeFileSync } from "node:fs";
import { SUITES } from "./suites.mjs";

const page = new URL("../../../docs/guide/from-node-sqlite3.md", import.meta.url);
const results = JSON.parse(readFileSync(new URL("results.json", import.meta.url), "utf8"));
const MARKS = /(?<=<!-- suites -->\n).*(?=<!-- \/suites -->)/s;

/** The table as the results have it. */
export function table() {
  const passed = (name, side) => results[name]?.[side]?.passed ?? "";
  const left = (without) => Object.entries(without).map(([test, reason]) => `"${test}": ${reason}`);
  const rows = SUITES.map(
    ({ name, tag, without }) =>
      `| ${name} ${tag.replace("v", "")} | ${passed(name, "own")} | ${passed(name, "flatwater")} | ${left(without).join("; ")} |\n`,
  );
  return `\n| tests of | pass on node-sqlite3 | pass here | not run here |\n|---|---|---|---|\n${rows.join("")}\n`;
}

/** The table as the guide has it. */
export const written = () => MARKS.exec(readFileSync(page, "utf8"))[0];

export function write() {
  writeFileSync(page, readFileSync(page, "utf8").replace(MARKS, table()));
}
