// A result that cannot be made: the error says whether its statement was executed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, numbers } from "../support.mjs";

const BIG = "9007199254740993";

async function filled(t) {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  return db;
}

const count = (db) => db.queryValue("SELECT count(*) FROM t");
const isApplied = { kind: "decode", applied: "yes", retryable: false, message: /; the call was executed/ };

test("a row of RETURNING that cannot be made says that it was executed, on every road", async (t) => {
  const db = await filled(t);
  const insert = `INSERT INTO t (a) VALUES (${BIG}) RETURNING a`;
  const calls = [
    () => db.query(insert),
    () => db.queryOne(insert),
    () => db.queryValue(insert),
    () => db.queryValues(insert),
    () => db.batches(insert).next(),
    () => db.query("INSERT INTO t (a) VALUES (1) RETURNING a, id AS a"),
    () => db.queryJson("INSERT INTO t (a) VALUES (1) RETURNING CAST(x'ff' AS TEXT) AS a"),
    () => db.queryJson(`INSERT INTO t (a) ${numbers(1_000)} SELECT 'no JSON' FROM c RETURNING a`, [], { embed: ["a"] }),
    () => db.batch(["INSERT INTO t (a) VALUES (2)", insert]).finally(() => db.execute("DELETE FROM t WHERE a = 2")),
    () => db.batch(["INSERT INTO t (a) VALUES (1) RETURNING a, id AS a"]),
    () => db.query(`INSERT INTO t (a) ${numbers(20_000)} SELECT iif(x = 20000, ${BIG}, 0) FROM c RETURNING a`),
  ];
  let before = 0;
  for (const call of calls) {
    // Two columns of one name are a mistake of the program.
    const kind = call.toString().includes("id AS a") ? "misuse" : "decode";
    await assert.rejects(call, { ...isApplied, kind }, call.toString());
    const now = await count(db);
    assert.ok(now > before, call.toString());
    before = now;
  }
});

test("which statement of a batch it is, is said", async (t) => {
  const db = await filled(t);
  const statements = ["INSERT INTO t (a) VALUES (1) RETURNING a", `INSERT INTO t (a) VALUES (${BIG}) RETURNING a`];
  await assert.rejects(db.batch(statements), { ...isApplied, message: /^statement 1: an integer in column "a"/ });
  assert.equal(await count(db), 2);
});

test("in a transaction it is undone with that, unless the error is caught", async (t) => {
  const db = await filled(t);
  const insert = `INSERT INTO t (a) VALUES (${BIG}) RETURNING a`;
  await assert.rejects(
    db.transaction((tx) => tx.query(insert)),
    isApplied,
  );
  assert.equal(await count(db), 0);
  await db.transaction((tx) => assert.rejects(tx.query(insert), isApplied));
  assert.equal(await count(db), 1);
});

test("of a row that is only read nothing is said", async (t) => {
  const db = await filled(t);
  const calls = [
    () => db.query(`SELECT ${BIG} AS a`),
    () => db.query("SELECT 1 AS a, 2 AS a"),
    () => db.queryJson("SELECT CAST(x'ff' AS TEXT) AS a"),
  ];
  for (const call of calls) {
    await assert.rejects(call, (error) => error.applied === undefined && !/executed/.test(error.message));
  }
});

test("a row that the program refuses is refused by the program's own error, after its statement", async (t) => {
  const db = await filled(t);
  const as = {
    parse() {
      throw new RangeError("not this row");
    },
  };
  await assert.rejects(db.query("INSERT INTO t (a) VALUES (1) RETURNING a", [], { as }), RangeError);
  assert.equal(await count(db), 1);
});

test("a statement that is refused is named by its number, however they are given", async (t) => {
  const db = await filled(t);
  const bad = (at, given) =>
    Array.from({ length: 5000 }, (_, of) => (of === at ? given : ["INSERT INTO t (a) VALUES (?)", [of]]));
  const forms = [
    (all) => all,
    (all) => all.values(),
    async function* (all) {
      yield* all;
    },
  ];
  for (const form of forms) {
    for (const at of [0, 511, 512, 700, 4999]) {
      const undefinedValue = bad(at, ["INSERT INTO t (a) VALUES (?)", [undefined]]);
      const message = new RegExp(`^statement ${at}: parameter 1: undefined`);
      await assert.rejects(db.batch(form(undefinedValue)), { kind: "misuse", message });
      await assert.rejects(db.batch(form(bad(at, 7))), { message: new RegExp(`^statement ${at} must be SQL`) });
      const rows = Array.from({ length: 5000 }, (_, of) => [of === at ? undefined : of]);
      const row = new RegExp(`^row ${at}: parameter 1: undefined`);
      await assert.rejects(db.executeMany("INSERT INTO t (a) VALUES (?)", form(rows)), { message: row });
    }
  }
  assert.equal(await count(db), 0);
});
