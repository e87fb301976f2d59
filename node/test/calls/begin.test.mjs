// Transactions that their caller ends, and savepoints by name.
import assert from "node:assert/strict";
import { AsyncResource } from "node:async_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { database, until } from "../support.mjs";

async function withTable(t, options) {
  const db = await database(t, options);
  await db.execute("CREATE TABLE t (a)");
  return db;
}

const insert = (on, value) => on.execute("INSERT INTO t VALUES (?)", [value]);
const all = (on) => on.queryValues("SELECT a FROM t ORDER BY a");

test("a transaction that was begun is committed or rolled back by its caller, and is over then", async (t) => {
  const db = await withTable(t);
  const kept = await db.begin();
  await insert(kept, 1);
  assert.ok(kept.inTransaction);
  assert.deepEqual([await all(kept), await all(db)], [[1], []]);
  await kept.commit();
  const undone = await db.begin();
  await insert(undone, 2);
  await undone.rollback();
  await undone.rollback();
  for (const tx of [kept, undone]) {
    assert.equal(tx.inTransaction, false);
    await assert.rejects(insert(tx, 3), { kind: "misuse", code: "FLATWATER_FINISHED" });
    await assert.rejects(tx.commit(), { kind: "misuse", code: "FLATWATER_FINISHED" });
    await assert.rejects(tx.savepoint("a"), { kind: "misuse", code: "FLATWATER_FINISHED" });
  }
  assert.deepEqual(await all(db), [1]);
});

test("what is disposed of is rolled back, unless it is over", async (t) => {
  const db = await withTable(t);
  const undone = await db.begin();
  await insert(undone, 1);
  await undone[Symbol.asyncDispose]();
  const kept = await db.begin();
  await insert(kept, 2);
  await kept.commit();
  await kept[Symbol.asyncDispose]();
  assert.deepEqual(await all(db), [2]);
});

test("a nested one is undone alone, and its end leaves the outer one open", async (t) => {
  const db = await withTable(t);
  const tx = await db.begin();
  await insert(tx, 1);
  const undone = await tx.begin();
  await insert(undone, 2);
  // Of the same flow: it runs in the inner one.
  await insert(tx, 3);
  const innermost = await undone.begin();
  await insert(innermost, 4);
  await innermost.commit();
  await undone.rollback();
  const kept = await tx.begin();
  await insert(kept, 5);
  await kept.commit();
  await tx.transaction((inner) => insert(inner, 6));
  await tx.commit();
  assert.deepEqual(await all(db), [1, 5, 6]);
});

test("the end of the outer one undoes a nested one that is open, and keeps the rest", async (t) => {
  const db = await withTable(t);
  for (const [end, kept] of [
    ["commit", [1]],
    ["rollback", [1]],
  ]) {
    const tx = await db.begin();
    await tx.execute("INSERT INTO t SELECT 1 WHERE NOT EXISTS (SELECT * FROM t)");
    const inner = await tx.begin();
    await insert(inner, 2);
    await tx[end]();
    assert.equal(inner.inTransaction, false);
    await assert.rejects(inner.commit(), { name: "FlatwaterError" });
    await inner.rollback();
    assert.deepEqual(await all(db), kept, end);
  }
});

test("a write of the same flow on the database is refused until it ends, one of another flow waits", async (t) => {
  const db = await withTable(t);
  const elsewhere = new AsyncResource("request");
  const tx = await db.begin();
  await assert.rejects(insert(db, 1), { kind: "misuse", message: /inside its own transaction/ });
  await assert.rejects(db.begin(), { message: /inside its own transaction/ });
  await assert.rejects(db.close(), { kind: "misuse" });
  const write = elsewhere.runInAsyncScope(() => insert(db, 2));
  await until(() => db.stats().writesWaiting > 0);
  await insert(tx, 3);
  await tx.commit();
  await write;
  await insert(db, 4);
  for (let number = 5; number < 8; number++) {
    const again = await db.begin();
    await insert(again, number);
    await again.commit();
  }
  assert.deepEqual(await all(db), [2, 3, 4, 5, 6, 7]);
});

test("a begin that fails, or is given up, leaves nothing open and no note of it", async (t) => {
  const db = await withTable(t);
  const elsewhere = new AsyncResource("request");
  const held = await elsewhere.runInAsyncScope(() => db.begin());
  await assert.rejects(db.begin({ timeout: 10 }), { kind: "timeout", applied: "no" });
  const controller = new AbortController();
  const waits = db.begin({ signal: controller.signal });
  controller.abort(new RangeError("given up"));
  await assert.rejects(waits, RangeError);
  await assert.rejects(db.begin({ timout: 1 }), { message: /did you mean "timeout"/ });
  await held.rollback();
  await insert(db, 1);
});

test("a commit that fails keeps nothing, and the transaction is over", async (t) => {
  const db = await database(t);
  await db.executeScript(
    "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a REFERENCES a DEFERRABLE INITIALLY DEFERRED)",
  );
  const tx = await db.begin();
  await tx.execute("INSERT INTO b VALUES (1)");
  await assert.rejects(tx.commit({ timout: 1 }), { kind: "misuse" });
  await assert.rejects(tx.commit({ timeout: "soon" }), { kind: "misuse" });
  assert.ok(tx.inTransaction, "what was refused has ended nothing");
  await assert.rejects(tx.commit(), { kind: "constraint", message: /FOREIGN KEY/ });
  assert.equal(tx.inTransaction, false);
  await tx.rollback();
  assert.equal(await db.queryValue("SELECT count(*) FROM b"), 0);
  await db.execute("INSERT INTO a VALUES (1)");
});

test("a transaction's function may roll back and return, and commits nothing else", async (t) => {
  const db = await withTable(t);
  const result = await db.transaction(async (tx) => {
    await insert(tx, 1);
    await tx.rollback();
    await tx.rollback();
    await assert.rejects(insert(tx, 2), { kind: "misuse" });
    await insert(db, 3);
    return "undone";
  });
  assert.equal(result, "undone");
  assert.deepEqual(await all(db), [3]);
  await db.transaction(async (tx) => assert.throws(() => tx.commit, { hint: /commits when its function returns/ }));
});

test("savepoints have names, form a stack, and end with their transaction", async (t) => {
  const db = await withTable(t);
  await db.transaction(async (tx) => {
    await insert(tx, 1);
    await tx.savepoint("a");
    await insert(tx, 2);
    await tx.savepoint("b");
    await insert(tx, 3);
    await tx.rollbackTo("a");
    await assert.rejects(tx.release("b"), { code: "FLATWATER_NO_SUCH_SAVEPOINT" });
    await insert(tx, 4);
    await tx.release("A");
    await assert.rejects(tx.rollbackTo("a"), { code: "FLATWATER_NO_SUCH_SAVEPOINT" });
    await tx.savepoint('any "text" \u{1f600}');
    await insert(tx, 5);
    await tx.rollbackTo('any "text" \u{1f600}');
    for (const name of ["", 5, undefined, "half \ud800"]) {
      await assert.rejects(tx.savepoint(name), { kind: "misuse" });
    }
    await assert.rejects(tx.savepoint("c", { timeout: 0 }), { kind: "timeout" });
    await assert.rejects(tx.savepoint("c", { timout: 0 }), { kind: "misuse" });
    await tx.transaction(async (inner) => {
      await assert.rejects(inner.rollbackTo('any "text" \u{1f600}'), { hint: /belongs to the outer transaction/ });
      await inner.savepoint("a");
      await insert(inner, 6);
      // In the flow of the inner one it is a savepoint of that.
      await tx.rollbackTo("a");
      await insert(inner, 7);
    });
  });
  assert.deepEqual(await all(db), [1, 4, 7]);
  await assert.rejects(async () => db.savepoint("a"), { message: /no `savepoint` here/ });
});

test("one that is collected is rolled back", async (t) => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc");
  const db = await withTable(t, { tuning: { transactionIdle: 3_600_000 } });
  const elsewhere = new AsyncResource("request");
  await elsewhere.runInAsyncScope(async () => {
    const dropped = await db.begin();
    await insert(dropped, 1);
  });
  const write = insert(db, 2);
  let isDone = false;
  write.then(() => (isDone = true));
  await until(async () => {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 1));
    return isDone;
  });
  assert.deepEqual(await all(db), [2]);
});

test("a transaction in memory, where the database itself is in it", async () => {
  const db = await open(":memory:");
  await db.execute("CREATE TABLE t (a)");
  const tx = await db.begin();
  await insert(tx, 1);
  await assert.rejects(all(db), { message: /inside its own transaction/ });
  await tx.commit();
  assert.deepEqual(await all(db), [1]);
  await db.close();
});
