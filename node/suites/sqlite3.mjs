// The tests of node-sqlite3, and those that Knex has for it, on `flatwater/sqlite3`: `node sqlite3.mjs [<project>]`. With `--own` they run on
// node-sqlite3 itself, where it is installed (`npm rebuild sqlite3` in sqlite3/). With `--write` the table of the guide gets the results.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SUITES } from "./sqlite3/suites.mjs";
import { source } from "./source.mjs";
import { workspace } from "./workspace.mjs";

const [flags, only] = [
  new Set(process.argv.filter((arg) => arg.startsWith("--"))),
  process.argv.slice(2).filter((arg) => !arg.startsWith("--")),
];
/** Knex has tests that compare with better-sqlite3, which is the lab's. */
const lab = fileURLToPath(new URL("../../lab/peers/node/node_modules", import.meta.url));
const packages = fileURLToPath(new URL("sqlite3/node_modules", import.meta.url));
const mocha = join(
  createRequire(new URL("sqlite3/", import.meta.url)).resolve("mocha/package.json"),
  "../bin/mocha.js",
);
const results = new URL("sqlite3/results.json", import.meta.url);
const side = flags.has("--own") ? "own" : "flatwater";

/** What `require("sqlite3")` returns in the folder. */
function driver(folder) {
  const own = join(packages, "sqlite3");
  const text = `module.exports = require(${JSON.stringify(side === "own" ? own : "flatwater/sqlite3")});\n`;
  const module = join(folder, "node_modules/sqlite3");
  rmSync(module, { recursive: true, force: true });
  mkdirSync(module, { recursive: true });
  writeFileSync(join(module, "package.json"), JSON.stringify({ name: "sqlite3", version: "6.0.1", main: "index.js" }));
  writeFileSync(join(module, "index.js"), text);
}

/** Runs the tests of a project. Returns how many pass, and which fail. */
async function run({ name, tag, commit, repository, paths, prepare, args, without }) {
  const folder = source(repository, tag, commit, paths);
  if (folder === null) {
    console.log(`skipped: the tests of ${name} need its repository`);
    return undefined;
  }
  workspace(folder, {});
  driver(folder);
  await prepare?.(folder);
  const report = join(folder, "report.json");
  rmSync(report, { force: true });
  const left = side === "own" ? [] : ["--invert", "--grep", Object.keys(without).map(escaped).join("|")];
  const options = ["--exit", "--timeout", "60000", "--reporter", "json", "--reporter-option", `output=${report}`];
  const env = {
    ...process.env,
    NODE_PATH: [packages, lab].join(delimiter),
    DB: "sqlite3",
    DIALECT: "sqlite",
    KNEX_TEST_TIMEOUT: "60000",
  };
  spawnSync(process.execPath, [mocha, ...options, ...(left.at(-1) === "" ? [] : left), ...args], {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const { stats, failures } = JSON.parse(readFileSync(report, "utf8"));
  return { passed: stats.passes, failures: failures.map(({ fullTitle, err }) => `${fullTitle}: ${err.message}`) };
}

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

let hasFailed = false;
const known = existsSync(results) ? JSON.parse(readFileSync(results, "utf8")) : {};
for (const suite of SUITES) {
  if (only.length > 0 && !only.includes(suite.name)) continue;
  const ran = await run(suite);
  if (ran === undefined) continue;
  console.log(`${suite.name} ${suite.tag} on ${side}: ${ran.passed} passed, ${ran.failures.length} failed`);
  ran.failures.forEach((failure) => console.log(`  ${failure}`));
  known[suite.name] = { ...known[suite.name], [side]: { passed: ran.passed, failed: ran.failures.length } };
  hasFailed ||= side === "flatwater" && ran.failures.length > 0;
}
if (flags.has("--write")) {
  writeFileSync(results, `${JSON.stringify(known, null, 2)}\n`);
  (await import("./sqlite3/table.mjs")).write();
}
process.exitCode = hasFailed ? 1 : 0;
