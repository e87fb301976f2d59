// Names and texts that are not what they seem: of another realm, of another copy of the package, and no text at all.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import vm from "node:vm";
import { open } from "../../dist/index.mjs";
import { database, folder } from "../support.mjs";

test("values of another realm are values, also alone", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const realm = vm.createContext();
  const insert = await db.prepare("INSERT INTO t VALUES (?)");
  const values = [
    "new Date(0)",
    "new Uint8Array([1])",
    "new Uint8Array([1]).buffer",
    "new DataView(new ArrayBuffer(1))",
  ];
  for (const source of values) {
    const value = vm.runInContext(source, realm);
    await insert.run(value);
    await insert.run([value]);
    assert.equal(await db.queryValue("SELECT count(*) FROM t WHERE a = ?", [value]), 2, source);
    assert.equal(await (await db.prepare("SELECT count(*) FROM t WHERE a = ?")).pluck().get(value), 2);
    assert.equal(await (await db.prepare("SELECT count(*) FROM t WHERE a = ?")).pluck().bind(value).get(), 2);
    await db.execute("DELETE FROM t");
  }
  const [array, named] = [vm.runInContext("[5]", realm), vm.runInContext("({ a: 6 })", realm)];
  await insert.run(array);
  await (await db.prepare("INSERT INTO t VALUES (:a)")).run(named);
  assert.equal(await db.queryValue("SELECT count(*) FROM t WHERE a IN (5, 6)"), 2);
});

test("the name `__proto__` is a name: of columns in every form, of parameters and of options", async (t) => {
  const db = await database(t);
  class Note {
    hello() {
      return 1;
    }
  }
  for (const value of ["NULL", "1", "x'01'", "'text'"]) {
    const query = `SELECT 1 AS id, ${value} AS "__proto__", 2 AS hello, 3 AS "constructor"`;
    const stored = await db.queryValue(`SELECT ${value}`);
    const forms = { plain: {}, merged: { rows: "merged" }, class: { as: Note } };
    for (const [form, options] of Object.entries(forms)) {
      for (const row of [await db.queryOne(query, [], options), ...(await db.query(query, [], options))]) {
        assert.deepEqual(
          Object.entries(row),
          [
            ["id", 1],
            ["__proto__", stored],
            ["hello", 2],
            ["constructor", 3],
          ],
          form,
        );
        assert.equal(Object.getPrototypeOf(row), form === "class" ? Note.prototype : Object.prototype);
      }
    }
    const [batched] = await db.batch([[query]]);
    assert.deepEqual(Object.keys(batched.rows[0]), ["id", "__proto__", "hello", "constructor"]);
  }
  assert.equal((await db.queryJson(`SELECT 1 AS "__proto__"`)).toString(), '[{"__proto__":1}]');
  const named = JSON.parse('{ "__proto__": 7 }');
  assert.equal(await db.queryValue("SELECT :__proto__", named), 7);
  await db.execute("CREATE TABLE t (a)");
  await db.executeMany("INSERT INTO t VALUES (:__proto__)", Array(5_000).fill(named));
  assert.equal(await db.queryValue("SELECT sum(a) FROM t"), 35_000);
  for (const name of ["__proto__", "toString", "constructor"]) {
    const options = JSON.parse(`{ "${name}": {} }`);
    await assert.rejects(db.query("SELECT 1", [], options), {
      kind: "misuse",
      message: new RegExp(`option "${name}"`),
    });
    await assert.rejects(open(":memory:", options), { kind: "misuse", message: new RegExp(`option "${name}"`) });
    await assert.rejects(db.query("SELECT 1", [], { integers: name }), { kind: "misuse" });
  }
});

test("SQL of a template of another copy of the package is SQL", async (t) => {
  const require = createRequire(import.meta.url);
  const path = require.resolve("../../dist/values/sql.js");
  delete require.cache[path];
  const other = require(path);
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  await db.execute(other.sql`INSERT INTO t VALUES (${1})`);
  await db.batch(Array(5_000).fill(other.sql`INSERT INTO t VALUES (${2})`));
  const { sql } = await import("../../dist/index.mjs");
  assert.ok(other.sql`SELECT 1` instanceof (await import("../../dist/index.mjs")).Sql);
  assert.deepEqual(await db.query(sql`SELECT count(*) AS n FROM t WHERE ${other.sql`a = ${2}`}`), [{ n: 5_000 }]);
  assert.ok(!({ text: "SELECT 1", values: [] } instanceof (await import("../../dist/index.mjs")).Sql));
});

test("half of a surrogate pair is refused in SQL, paths, names and options, and nothing is stored", async (t) => {
  const dir = folder(t);
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const half = "\ud83d";
  const insert = `INSERT INTO t VALUES ('${half}')`;
  const insertNamed = "INSERT INTO t VALUES (:a)";
  const statement = await db.prepare("SELECT 1");
  const calls = [
    () => db.execute(insert),
    () => db.execute("INSERT INTO t VALUES (?)", [half]),
    () => db.execute(insertNamed, { [`a${half}`]: 1 }),
    () => db.executeMany(`${insert.replace("VALUES (", "VALUES (? || ")}`, [["x"]]),
    () => db.batch([insert]),
    () => db.batch(["INSERT INTO t VALUES (1)", [insert, []]]),
    () => db.executeScript(insert),
    () => db.query(`SELECT 1 AS "${half}"`),
    () => db.queryJson(`SELECT 1 AS "${half}"`),
    () => db.stream(`SELECT 1 AS "${half}"`).next(),
    () => db.live(`SELECT 1 AS "${half}"`).next(),
    () => db.prepare(`SELECT '${half}'`),
    () => db.migrate([["1", insert]]),
    () => db.migrate([[half, "SELECT 1"]]),
    () => db.openBlob(half, "a", 1),
    () => db.openBlob("t", half, 1),
    () => db.backup(`${dir}/${half}`),
    () => db.vacuumInto(`${dir}/${half}`),
    () => open(`${dir}/${half}.db`),
    () => open(":memory:", { onOpen: `SELECT '${half}'` }),
    () => open(":memory:", { key: half }),
    () => db.transaction((tx) => tx.execute(insert)),
  ];
  for (const call of calls) {
    await assert.rejects(call(), { kind: "misuse", message: /hal(f|ves) of (a )?surrogate pair/ }, String(call));
  }
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
  // The replacement character itself is a character.
  await db.execute("INSERT INTO t VALUES ('\ufffd')");
  assert.equal(await db.queryValue("SELECT a FROM t"), "\ufffd");
  assert.equal(await statement.pluck().get(), 1);
});

test("a text that is longer than a string may be is an error of the package, which says what was done", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const long = "printf('%.*c', 600000000, 'x')";
  const refused = {
    kind: "decode",
    name: "FlatwaterError",
    message: /^the text in column "b" is longer than/,
    hint: /substr/,
  };
  await assert.rejects(db.query(`SELECT 1 AS a, ${long} AS b`), { ...refused, applied: undefined });
  await assert.rejects(db.query(`INSERT INTO t SELECT 1 RETURNING a, ${long} AS b`), { ...refused, applied: "yes" });
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), [1]);
  assert.equal(await db.queryValue("SELECT 1"), 1);
});

test("errors name options as they are set in Node", async (t) => {
  const path = `${folder(t)}/a.db`;
  const db = await open(path, { busyTimeout: 1_000 });
  t.after(() => db.close());
  await assert.rejects(open(path, { busyTimeout: 2_000 }), {
    kind: "misuse",
    message: /the option `busyTimeout` -- .*closes the old handle/,
  });
  await assert.rejects(open(":memory:", { tuning: { transactionIdle: 0 } }), { message: /^`transactionIdle` must be/ });
  await assert.rejects(db.query("PRAGMA busy_timeout = 5"), (error) => !/busy_timeout/.test(error.hint ?? ""));
});
