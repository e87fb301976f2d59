// @ts-check
// A worker thread that writes a large table to a file, while the main thread serves its event loop.
//
// It shows a result that is fetched as it is written: memory does not grow with it, and all of it is of one point in time. The worker
// opens the file itself, and has the same engine as the main thread, which goes on writing.
//
//     make node-package && cd examples/node && npm install
//     node export.mjs [readings.db [readings.csv]]
//
// ROWS says how many rows there are; a million if it does not.
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import {
  isMainThread,
  parentPort,
  Worker,
  workerData,
} from "node:worker_threads";
import { open } from "flatwater";

const ROWS = Number(process.env.ROWS ?? 1_000_000);
const TABLES = `
CREATE TABLE readings (id INTEGER PRIMARY KEY, sensor TEXT NOT NULL, value REAL NOT NULL) STRICT;
CREATE TABLE beats (id INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT`;
/** What both threads open the file with. @type {import("flatwater").Options} */
const OPTIONS = { migrations: [["001_tables", TABLES]] };
const FILL = `WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n LIMIT ?)
  INSERT INTO readings SELECT id, 'sensor ' || (id % 100), id / 8.0 FROM n`;

await (isMainThread ? main() : write(workerData));

async function main() {
  const [path = "readings.db", target = "readings.csv"] = process.argv.slice(2);
  const db = await open(path, OPTIONS);
  if ((await db.queryValue("SELECT max(id) FROM readings")) === null) {
    await db.execute(FILL, [ROWS]);
  }
  const worker = new Worker(fileURLToPath(import.meta.url), {
    workerData: { path, target },
  });
  let written;
  worker.once("message", (rows) => (written = rows));
  const ended = new Promise((resolve, reject) =>
    worker.once("exit", resolve).once("error", reject),
  );
  let isOver = false;
  ended.finally(() => (isOver = true)).catch(() => {});
  // The main thread writes meanwhile.
  let beats = 0;
  while (!isOver) {
    await db.execute("INSERT INTO beats (at) VALUES (?)", [performance.now()]);
    beats++;
  }
  await ended;
  console.log(`${written} rows in ${target}, and ${beats} writes meanwhile`);
  await db.close();
}

/** What the worker does. @param {{ path: string, target: string }} given */
async function write({ path, target }) {
  const db = await open(path, OPTIONS);
  let rows = 0;
  async function* lines() {
    yield "id,sensor,value\n";
    /** @type {AsyncIterable<unknown[][]>} */
    const all = db.batches(
      "SELECT id, sensor, value FROM readings ORDER BY id",
      [],
      { rows: "array" },
    );
    for await (const batch of all) {
      rows += batch.length;
      yield batch.map((row) => `${row.join(",")}\n`).join("");
    }
  }
  await pipeline(lines, createWriteStream(target));
  await db.close();
  parentPort?.postMessage(rows);
}
