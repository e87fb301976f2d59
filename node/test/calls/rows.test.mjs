// The form of rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, numbers, run } from "../support.mjs";

const MIXED = `SELECT 1 AS a, 'x' AS b, x'0102' AS c UNION ALL SELECT 'y', NULL, x'' UNION ALL SELECT NULL, 2.5, 'z'
  UNION ALL SELECT x'00', 'ü', NULL`;
const EXPECTED = [
  { a: 1, b: "x", c: new Uint8Array([1, 2]) },
  { a: "y", b: null, c: new Uint8Array() },
  { a: null, b: 2.5, c: "z" },
  { a: new Uint8Array([0]), b: "ü", c: null },
];

test("columns of several kinds keep each value as it is", async (t) => {
  const db = await database(t);
  assert.deepEqual(await db.query(MIXED), EXPECTED);
  assert.deepEqual(
    await db.query(MIXED, [], { rows: "array" }),
    EXPECTED.map((row) => Object.values(row)),
  );
});

test("where generated code is refused, rows are the same", async () => {
  const { output, code, errors } = await run(
    `
    const db = await open(":memory:");
    const rows = await db.query(${JSON.stringify(MIXED)});
    console.log(JSON.stringify(rows.map((row) => Object.values(row).map((value) => value?.byteLength ?? value))));
    console.log(JSON.stringify(await db.query("SELECT 1 AS a, 'b' AS __proto__", [], { rows: "array" })));
    console.log(typeof (await db.queryValue("SELECT 9007199254740993", [], { integers: "auto" })));`,
    { flags: ["--disallow-code-generation-from-strings"] },
  );
  assert.equal(code, 0, errors);
  assert.equal(output, '[[1,"x",2],["y",null,0],[null,2.5,"z"],[1,"ü",null]]\n[[1,"b"]]\nbigint\n');
});

test("names of columns are names and nothing else", async (t) => {
  const db = await database(t);
  const [row] = await db.query(`SELECT 1 AS "__proto__", 2 AS "a""b", 3 AS "constructor", 4 AS "\u2028", 5 AS "0"`);
  assert.deepEqual(Object.keys(row).sort(), ["0", "__proto__", 'a"b', "constructor", "\u2028"].sort());
  assert.equal(Object.getPrototypeOf(row), Object.prototype);
  assert.equal(Object.getOwnPropertyDescriptor(row, "__proto__").value, 1);
});

test("two columns of one name are refused as objects, and there as arrays", async (t) => {
  const db = await database(t);
  await assert.rejects(db.query("SELECT 1 AS a, 2 AS a"), { kind: "misuse", message: /rows: 'array'/ });
  assert.deepEqual(await db.query("SELECT 1 AS a, 2 AS a", [], { rows: "array" }), [[1, 2]]);
});

test("a result without rows is an empty array", async (t) => {
  const db = await database(t);
  assert.deepEqual(await db.query("SELECT 1 AS a WHERE 0"), []);
  assert.equal(await db.queryOptionalValue("SELECT 1 WHERE 0"), undefined);
  assert.equal(await db.queryValue("SELECT NULL"), null);
});

test("a schema that changes makes other rows", async (t) => {
  const db = await database(t);
  await db.executeScript("CREATE TABLE t (a); INSERT INTO t VALUES (1)");
  for (let at = 0; at < 3; at++) assert.deepEqual(await db.query("SELECT * FROM t"), [{ a: 1 }]);
  await db.execute("ALTER TABLE t ADD COLUMN b DEFAULT 'new'");
  for (let at = 0; at < 3; at++) assert.deepEqual(await db.query("SELECT * FROM t"), [{ a: 1, b: "new" }]);
  await db.execute("UPDATE t SET a = 'text'");
  for (let at = 0; at < 3; at++) assert.deepEqual(await db.query("SELECT * FROM t"), [{ a: "text", b: "new" }]);
});

test("results of thousands of texts do not mix", async (t) => {
  const db = await database(t);
  for (let at = 0; at < 1500; at++) {
    assert.deepEqual(await db.query(`SELECT ${at} AS n${at}`), [{ [`n${at}`]: at }]);
  }
  assert.deepEqual(await db.query("SELECT 0 AS n0"), [{ n0: 0 }]);
});

test("long texts and blobs come whole, in chunks", async (t) => {
  const db = await database(t);
  const rows = await db.query(
    `${numbers(50)} SELECT x, printf('%.*c', x * 1000, 'ä') AS text, zeroblob(x * 1000) AS blob FROM c`,
  );
  assert.equal(rows.length, 50);
  for (const { x, text, blob } of rows) {
    assert.equal(text, "ä".repeat(x * 1000));
    assert.equal(blob.length, x * 1000);
    assert.equal(blob.constructor, Uint8Array);
  }
});

test("streams yield every row, and leaving one gives its connection back", async (t) => {
  const db = await database(t, { readers: 1 });
  const text = `${numbers(20_000)} SELECT x FROM c`;
  let sum = 0;
  for await (const { x } of db.stream(text)) sum += x;
  assert.equal(sum, 200_010_000);
  for (let at = 0; at < 20; at++) {
    for await (const batch of db.batches(text)) {
      assert.ok(batch.length > 0);
      break;
    }
    for await (const _ of db.stream(text)) break;
  }
  const reader = db.batches(text).readable().getReader();
  let read = 0;
  for (let part; !(part = await reader.read()).done;) read += part.value.length;
  assert.equal(read, 20_000);
  await db.batches(text).readable().cancel();
  assert.equal(await db.queryValue("SELECT 1"), 1);
  assert.equal(db.stats().readersHeld, 0);
});

test("rows with NULL in any of their columns are as they are", async (t) => {
  const db = await database(t);
  const names = Array.from({ length: 12 }, (_, at) => `c${at}`);
  const text = `SELECT ${names.map((name, at) => `iif(:bits >> ${at} & 1, NULL, ${at % 2 ? `'t${at}'` : at}) AS ${name}`).join(", ")}`;
  for (let bits = 0; bits < 4096; bits++) {
    const expected = names.map((name, at) => [name, (bits >> at) & 1 ? null : at % 2 ? `t${at}` : at]);
    assert.deepEqual(await db.queryOne(text, { bits }), Object.fromEntries(expected));
  }
});
