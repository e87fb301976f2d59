// Connections of one's own.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { database, ENDLESS, until } from "../support.mjs";

test("transaction control as text, TEMP objects, ATTACH and PRAGMAs are a connection's own", async (t) => {
  const db = await database(t);
  await db.executeScript(
    "CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents); INSERT INTO accounts VALUES (1, 5), (2, 500)",
  );
  const own = db.connection();
  await own.execute("CREATE TEMP TABLE picked (id)");
  await own.execute("INSERT INTO picked SELECT id FROM accounts WHERE cents > ?", [50]);
  await own.execute("BEGIN");
  assert.ok(own.inTransaction);
  await own.execute("UPDATE accounts SET cents = 0 WHERE id IN picked");
  assert.equal(await db.queryValue("SELECT sum(cents) FROM accounts"), 505);
  await own.execute("ROLLBACK");
  assert.equal(own.inTransaction, false);
  await own.run("PRAGMA user_version = 7");
  assert.equal(await db.queryValue("PRAGMA user_version"), 7);
  await own.execute("ATTACH ':memory:' AS other");
  await own.executeScript("CREATE TABLE other.t (a); INSERT INTO other.t VALUES (1)");
  assert.deepEqual(await own.query("SELECT a FROM other.t"), [{ a: 1 }]);
  const changed = own.totalChanges;
  await own.execute("UPDATE accounts SET cents = 1");
  assert.equal(own.totalChanges, changed + 2);
  await assert.rejects(db.query("SELECT * FROM picked"), { kind: "sql" });
  const statement = await db.prepare("SELECT count(*) FROM accounts");
  assert.equal(await statement.in(own).pluck().get(), 2);
  await own.close();
  await own.close();
  await assert.rejects(own.query("SELECT 1"), { kind: "misuse" });
  assert.deepEqual([own.inTransaction, own.totalChanges], [false, 0]);
});

test("what is open on a connection that is closed or disposed of is rolled back", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  for (const end of ["close", Symbol.asyncDispose]) {
    const own = db.connection();
    await own.execute("BEGIN IMMEDIATE");
    const insert = own.execute("INSERT INTO t VALUES (1)");
    await own[end]();
    await insert;
    await db.execute("INSERT INTO t VALUES (2)");
  }
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), [2, 2]);
});

test("a connection may have foreign keys and a busy timeout of its own", async (t) => {
  const db = await database(t);
  await db.executeScript("CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a)");
  const own = db.connection({ foreignKeys: false, busyTimeout: 20 });
  const strict = db.connection({ foreignKeys: undefined });
  await own.execute("INSERT INTO b VALUES (1)");
  await assert.rejects(strict.execute("INSERT INTO b VALUES (1)"), { kind: "constraint" });
  await strict.execute("BEGIN IMMEDIATE");
  await assert.rejects(own.execute("INSERT INTO b VALUES (2)"), { kind: "busy" });
  await strict.close();
  await own.close();
});

test("a statement of a connection is interrupted", async (t) => {
  const db = await database(t);
  const own = db.connection();
  own.interrupt();
  const endless = own.query(ENDLESS);
  let isOver = false;
  endless.catch(() => (isOver = true));
  await until(() => (own.interrupt(), isOver));
  await assert.rejects(endless, { kind: "cancelled" });
  assert.equal(await own.queryValue("SELECT 1"), 1);
  await own.close();
});

test("in a transaction's function a write on a connection is refused, as it would wait; a read is not", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const own = db.connection();
  await db.transaction(async (tx) => {
    await tx.execute("INSERT INTO t VALUES (1)");
    assert.deepEqual(await own.query("SELECT a FROM t"), []);
    await assert.rejects(own.execute("INSERT INTO t VALUES (2)"), { message: /inside its own transaction/ });
  });
  await own.execute("INSERT INTO t VALUES (3)");
  assert.deepEqual(await own.queryValues("SELECT a FROM t"), [1, 3]);
  await own.close();
});

test("what is wrong with a connection is told at once", async (t) => {
  const db = await database(t);
  assert.throws(() => db.connection({ busy_timeout: 5 }), { kind: "misuse", message: /did you mean "busyTimeout"/ });
  assert.throws(() => db.connection({ busyTimeout: -1 }), { kind: "misuse" });
  assert.throws(() => db.connection({ foreignKeys: 1 }), { kind: "misuse" });
  const own = db.connection();
  assert.throws(() => own.begin, { hint: /run BEGIN as text/ });
  await assert.rejects(own.execute("PRAGMA journal_mode = DELETE"), { name: "FlatwaterError" });
  const gone = await open(":memory:");
  await gone.close();
  await assert.rejects(async () => gone.connection().query("SELECT 1"), { kind: "closed" });
});

test("a database that is closed closes its connections", async (t) => {
  const db = await database(t, { tuning: { closeWait: 0 } });
  const own = db.connection();
  await own.execute("CREATE TABLE t (a)");
  await own.execute("BEGIN IMMEDIATE");
  await db.close();
  await assert.rejects(own.execute("COMMIT"), { name: "FlatwaterError" });
});
