// The entries of this package in better-sqlite3's benchmark do what the others there do.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { folder } from "./support.mjs";

process.env.FLATWATER_PACKAGE = new URL("../dist/index.mjs", import.meta.url).href;
const { driver, types } = createRequire(import.meta.url)("../suites/benchmark/driver.cjs");

const COUNT = 250;
const columns = ["nul", "integer", "real", "text", "blob"];
const ctx = { table: "small", columns, count: COUNT };
const row = { nul: null, integer: 0x7fffffff, real: 1 / 3, text: "this is the text", blob: new Uint8Array([1, 2]) };

async function opened(t, pragmas = ["cache_size = -16000", "journal_mode = WAL", "synchronous = NORMAL"]) {
  const db = await driver(join(folder(t), "benchmark.db"), pragmas);
  t.after(() => db.close());
  await db.execute("CREATE TABLE small (nul, integer INTEGER, real REAL, text TEXT, blob BLOB)");
  await db.executeMany("INSERT INTO small VALUES (?, ?, ?, ?, ?)", Array(COUNT).fill(Object.values(row)));
  return db;
}
const count = (db) => db.queryValue("SELECT count(*) FROM small");

test("rows are read as they were written, from the first again after the last", async (t) => {
  const db = await opened(t);
  const select = await types.select(db, ctx);
  for (let at = 0; at < COUNT + 5; at++) {
    assert.deepEqual(await select(), row);
  }
  const all = await types["select-all"](db, ctx);
  for (const length of [100, 100, 50, 100]) {
    const rows = await all();
    assert.equal(rows.length, length);
    assert.deepEqual(rows[0], row);
  }
  const iterate = await types["select-iterate"](db, ctx);
  assert.equal(await iterate(), undefined);
});

test("rows are written, one by one and a hundred in a transaction", async (t) => {
  const db = await opened(t);
  const insert = await types.insert(db, ctx);
  await insert();
  await insert();
  assert.equal(await count(db), COUNT + 2);
  const transaction = await types.transaction(db, ctx);
  await transaction();
  assert.equal(await count(db), COUNT + 102);
  assert.deepEqual(await db.queryOne("SELECT * FROM small ORDER BY rowid DESC"), row);
  await db.exec("DELETE FROM small WHERE rowid > 1;");
  await db.exec("VACUUM;");
  assert.equal(await count(db), 1);
});

test("its PRAGMAs are options", async (t) => {
  const wal = await opened(t);
  assert.equal(await wal.queryValue("PRAGMA journal_mode"), "wal");
  const other = await opened(t, ["cache_size = 0", "journal_mode = DELETE", "synchronous = FULL"]);
  assert.equal(await other.queryValue("PRAGMA journal_mode"), "delete");
});
