// Medians of the times of one call, and of the ratios of rounds, in which the two libraries follow one another.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import define from "./functions.mjs";
import { open } from "./target/index.mjs";

const Better = createRequire(new URL("../../../peers/node/", import.meta.url))("better-sqlite3");
const [rows, rounds] = [Number(process.argv[2] ?? 3_000), Number(process.argv[3] ?? 5)];
const folder = mkdtempSync(join(tmpdir(), "functions-"));
const fill = `CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, s TEXT);
  WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT ${rows}) INSERT INTO t SELECT x, x, 'name ' || x FROM c`;

const better = new Better(join(folder, "better.db"));
better.pragma("journal_mode = WAL");
better.exec(fill);
define(better);
const db = await open(join(folder, "flatwater.db"), { functions: new URL("./functions.mjs", import.meta.url) });
await db.executeScript(fill);

/** The SQL, how many rows of it call the function, and how often it is run in a round. */
const LANES = {
  "scan, integer": ["SELECT sum(twice(v)) FROM t", rows, 1],
  "scan, text": ["SELECT sum(length(shout(s))) FROM t", rows, 1],
  aggregate: ["SELECT added(v) FROM t", rows, 1],
  window: ["SELECT sum(a) FROM (SELECT added(v) OVER (ORDER BY id ROWS 10 PRECEDING) a FROM t)", rows, 1],
  "one call": ["SELECT twice(21)", 1, 100],
};

const median = (list) => list.toSorted((one, other) => one - other)[list.length >> 1];
for (const [name, [sql, calls, repeat]] of Object.entries(LANES)) {
  const statement = better.prepare(sql);
  const times = [];
  for (let round = -2; round < rounds; round++) {
    const began = performance.now();
    for (let at = 0; at < repeat; at++) {
      statement.all();
    }
    const between = performance.now();
    for (let at = 0; at < repeat; at++) {
      await db.query(sql);
    }
    if (round >= 0) {
      times.push([between - began, performance.now() - between]);
    }
  }
  const us = (side) => ((median(times.map((time) => time[side])) * 1_000) / calls / repeat).toFixed(2);
  const ratio = median(times.map(([one, other]) => other / one)).toFixed(1);
  console.log(`${name}: better-sqlite3 ${us(0)} us, Flatwater ${us(1)} us, ratio ${ratio}`);
}
better.close();
await db.close();
rmSync(folder, { recursive: true });
