// A program for other runtimes that have Node's interfaces: `bun program.mjs <folder>`, `deno run -A program.mjs <folder>`.
import assert from "node:assert/strict";
import { join } from "node:path";
import { FlatwaterError, open } from "../../dist/index.mjs";
import sqlite3 from "../../dist/sqlite3.mjs";

const numbers = (count) => `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c ${count})`;

let called = 0;
const functionsOnLoop = (define) => define.function("counted", (value) => ++called && value);
const db = await open(join(process.argv[2], "test.db"), { functionsOnLoop });
await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
assert.deepEqual(await db.execute("INSERT INTO t (a) VALUES (?)", ["x"]), { changes: 1, lastInsertRowid: 1 });
const rows = Array.from({ length: 20_000 }, (_, at) => [at]);
assert.equal(await db.executeMany("INSERT INTO t (a) VALUES (?)", rows), 20_000);
assert.equal((await db.query("SELECT id, a, x'01' AS b FROM t")).length, 20_001);
const row = await db.queryOne("SELECT id, 'ä' AS a, x'01ff' AS b, NULL AS c, 2.5 AS d FROM t");
assert.deepEqual({ ...row, b: [...row.b] }, { id: 1, a: "ä", b: [1, 255], c: null, d: 2.5 });
const left = await db.transaction(async (tx) => {
  await tx.execute("DELETE FROM t WHERE id > 5");
  await assert.rejects(db.execute("DELETE FROM t"), { kind: "misuse" });
  return tx.queryValue("SELECT count(*) FROM t");
});
assert.equal(left, 5);
const [result] = await db.batch(["UPDATE t SET a = 'y' WHERE id = 1 RETURNING a"]);
assert.deepEqual(result.rows, [{ a: "y" }]);

const live = db.live("SELECT count(*) AS n FROM t");
assert.deepEqual((await live.next()).value, [{ n: 5 }]);
await db.execute("DELETE FROM t");
assert.deepEqual((await live.next()).value, [{ n: 0 }]);
await live.return();

await assert.rejects(db.query("SELEC"), (error) => error instanceof FlatwaterError && error.kind === "sql");
const controller = new AbortController();
const endless = db.query(`${numbers("")} SELECT count(*) FROM c`, [], { signal: controller.signal });
setTimeout(() => controller.abort(new RangeError("given up")), 5);
await assert.rejects(endless, RangeError);
await assert.rejects(db.query(`${numbers("")} SELECT count(*) FROM c`, [], { timeout: 5 }), { kind: "timeout" });
const values = await Promise.all(rows.slice(0, 100).map(([at]) => db.queryValue("SELECT ?", [at])));
assert.deepEqual(values, Array.from(values.keys()));
let sum = 0;
for await (const { x } of db.stream(`${numbers("LIMIT 1000")} SELECT x FROM c`)) sum += x;
assert.equal(sum, 500_500);
assert.equal(await db.queryValue(`${numbers("LIMIT 100")} SELECT sum(counted(x)) FROM c`), 5050);
assert.equal(called, 100);
assert.equal(new TextDecoder().decode(await db.queryJson("SELECT 1 AS a")), '[{"a":1}]');
const own = new sqlite3.Database(join(process.argv[2], "test.db"));
await new Promise((resolve) => own.exec("DELETE FROM t; BEGIN; INSERT INTO t (a) VALUES ('own')", resolve));
await new Promise((resolve) => own.run("COMMIT", resolve));
const got = await new Promise((resolve) => own.get("SELECT a, x'01' AS b FROM t", (_, row) => resolve(row)));
assert.deepEqual([got.a, Buffer.isBuffer(got.b)], ["own", true]);
await new Promise((resolve) => own.close(resolve));
// The end of the process closes the database, and an open one does not keep it alive.
