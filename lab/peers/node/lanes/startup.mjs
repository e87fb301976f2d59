// import: a fresh Node imports the library, and opens a database in memory, because a library may load its native part only then.
//
// The sample is both. `import_bytes` is what the process grew by meanwhile.

import assert from "../assert.mjs";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

import { Timing } from "../measure.mjs";

const CHILD = `
import { readFileSync } from "node:fs";
function resident() {
  try {
    return Number(/^VmRSS:\\s+(\\d+) kB/m.exec(readFileSync("/proc/self/status", "utf8"))[1]) * 1024;
  } catch {
    return 0;
  }
}
const [url, way] = process.argv.slice(-2);
const before = resident();
const began = process.hrtime.bigint();
const library = await import(url);
const db = way === "open" ? await library.open(":memory:") : new (library.DatabaseSync ?? library.default)(":memory:");
const took = process.hrtime.bigint() - began;
console.log(JSON.stringify([Number(took), resident() - before]));
await db.close();
`;

function run(trial) {
  const { module, awaits } = trial.Peer;
  const isPath = !module.startsWith("node:") && !module.startsWith("file:");
  const url = isPath ? pathToFileURL(createRequire(import.meta.url).resolve(module)).href : module;
  const timing = new Timing();
  const growth = [];
  for (let round = 0; round < trial.size(20, 2); round++) {
    const args = ["--no-warnings", "--input-type=module", "-e", CHILD, url, awaits ? "open" : "new"];
    const [took, grown] = JSON.parse(execFileSync(process.execPath, args, { cwd: trial.dir, encoding: "utf8" }));
    assert.ok(took > 0, "the import took no time");
    timing.samples.push(took);
    growth.push(grown);
  }
  timing.extra.import_bytes = growth.sort((one, other) => one - other)[growth.length >> 1];
  return timing.end(timing.samples.length);
}

export const LANES = [
  { name: "import", about: "a fresh Node imports the library and opens a database in memory", tag: "focused", group: "process",
    ops_unit: "imports", awaits: true, run },
];
