// Calls that are given up, at every stage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, ENDLESS, numbers, until } from "../support.mjs";

const reason = new RangeError("given up");
const isReason = (error) => error === reason;

/** A signal that is aborted when the condition holds. */
function abortedWhen(condition) {
  const controller = new AbortController();
  until(condition).then(() => controller.abort(reason));
  return controller.signal;
}

test("a call whose signal was aborted before it is not made", async (t) => {
  const db = await database(t);
  const signal = AbortSignal.abort(reason);
  await db.execute("CREATE TABLE t (a)");
  await assert.rejects(db.execute("INSERT INTO t VALUES (1)", [], { signal }), isReason);
  await assert.rejects(db.executeMany("INSERT INTO t VALUES (?)", [[1]], { signal }), isReason);
  await assert.rejects(db.batch(["INSERT INTO t VALUES (1)"], { signal }), isReason);
  await assert.rejects(
    db.transaction(() => assert.fail(), { signal }),
    isReason,
  );
  await assert.rejects(db.batches("SELECT 1", [], { signal }).next(), isReason);
  await assert.rejects(db.live("SELECT 1", [], { signal }).next(), isReason);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
});

test("a query is interrupted, wherever it is", async (t) => {
  const db = await database(t);
  for (let turns = 0; turns < 20; turns++) {
    let left = turns;
    await assert.rejects(db.query(ENDLESS, [], { signal: abortedWhen(() => left-- === 0) }), isReason);
  }
  assert.equal(await db.queryValue("SELECT 1"), 1);
});

test("a write that waits in the queue never runs", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  let release;
  const held = db.transaction(() => new Promise((resolve) => (release = resolve)));
  await until(() => release !== undefined);
  const signal = abortedWhen(() => db.stats().writesWaiting > 0);
  await assert.rejects(db.execute("INSERT INTO t VALUES (1)", [], { signal }), isReason);
  release();
  await held;
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
});

test("a write is undone before its call is rejected, wherever it is", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const insert = `INSERT INTO t ${ENDLESS.replace("count(*)", "x")}`;
  for (let turns = 0; turns < 20; turns++) {
    let left = turns;
    await assert.rejects(db.execute(insert, [], { signal: abortedWhen(() => left-- === 0) }), isReason);
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
  }
  await db.execute("INSERT INTO t VALUES (1)");
});

test("rows that are taken in slices are given up in between", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const controller = new AbortController();
  const rows = Array.from({ length: 300_000 }, (_, at) => [at]);
  const many = db.executeMany("INSERT INTO t VALUES (?)", rows, { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await assert.rejects(many, isReason);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 0);
});

test("a result that is taken in slices is given up in between", async (t) => {
  const db = await database(t);
  const controller = new AbortController();
  const query = db.query(`${numbers(1_000_000)} SELECT x, x AS y FROM c`, [], { signal: controller.signal });
  setImmediate(() => setImmediate(() => controller.abort(reason)));
  await assert.rejects(query, isReason);
  assert.equal(await db.queryValue("SELECT 1"), 1);
});

test("a signal that is aborted after the answer does nothing, and has no listener", async (t) => {
  const db = await database(t, { tuning: { inline: false } });
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given) => (listeners++, add(...given));
  signal.removeEventListener = (...given) => (listeners--, remove(...given));
  assert.equal(await db.queryValue("SELECT 1", [], { signal }), 1);
  assert.equal(listeners, 0);
  controller.abort(reason);
  assert.equal(await db.queryValue("SELECT 1"), 1);
});

test("a deadline ends a query that runs", async (t) => {
  const db = await database(t);
  await assert.rejects(db.query(ENDLESS, [], { timeout: 20 }), { kind: "timeout", applied: "no" });
  await assert.rejects(db.query("SELECT 1", [], { timeout: 0 }), { kind: "timeout" });
  assert.deepEqual(await db.query("SELECT 1 AS a", [], { timeout: 3_600_000 }), [{ a: 1 }]);
  const strict = await database(t, { timeout: 20 });
  await assert.rejects(strict.query(ENDLESS), { kind: "timeout" });
});

test("a live query whose signal is aborted ends", async (t) => {
  const db = await database(t);
  const controller = new AbortController();
  const live = db.live("SELECT 1 AS a", [], { signal: controller.signal });
  assert.deepEqual((await live.next()).value, [{ a: 1 }]);
  const next = live.next();
  controller.abort(reason);
  await assert.rejects(next, isReason);
  assert.deepEqual(await live.next(), { done: true, value: undefined });
  await until(() => db.stats().live.subscribers === 0);
});
