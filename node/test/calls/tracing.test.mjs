// What programs are told of calls.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { tracingChannel } from "node:diagnostics_channel";
import { createRequire } from "node:module";
import { test } from "node:test";
import { database, ENDLESS, numbers, run } from "../support.mjs";

const channel = tracingChannel("flatwater.statement");
const { native } = createRequire(import.meta.url)("../../dist/native/addon.js");
const NAMES = ["start", "end", "asyncStart", "asyncEnd", "error"];

/** Notes what is published until the test is over: the name of each event, and its context. */
function subscribed(t) {
  const events = [];
  const subscribers = Object.fromEntries(NAMES.map((name) => [name, (context) => events.push([name, context])]));
  channel.subscribe(subscribers);
  const end = () => channel.unsubscribe(subscribers);
  t.after(end);
  return { events, end, ended: () => events.filter(([name]) => name === "asyncEnd").map(([, context]) => context) };
}

const REFUSED = `INSERT INTO t VALUES ('secret'), ('secret')`;

test("a call has its events in order, with one context", async (t) => {
  const db = await database(t);
  const { events } = subscribed(t);
  await db.query("SELECT ? AS a", ["secret"]);
  assert.deepEqual(
    events.map(([name]) => name),
    ["start", "end", "asyncStart", "asyncEnd"],
  );
  const [[, context]] = events;
  assert.ok(events.every(([, other]) => other === context));
  const { queue, lock, run, total, ranOn, ...facts } = context;
  assert.deepEqual(facts, {
    path: db.path,
    operation: "query",
    sql: "SELECT ? AS a",
    inTransaction: false,
    rows: 1,
    isSlow: false,
  });
  assert.ok(["caller", "reader", "writer"].includes(ranOn));
  for (const time of [queue, lock, run]) assert.ok(time >= 0 && time <= total);
  assert.ok(!JSON.stringify(context).includes("secret"));
});

test("a call that fails has its error, and no value", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a UNIQUE)");
  const { events } = subscribed(t);
  await assert.rejects(db.execute(REFUSED.replaceAll("'secret'", "?"), ["secret", "secret"]), { kind: "constraint" });
  await assert.rejects(db.execute("DELETE FROM t", [], { timout: 1 }), { kind: "misuse" });
  assert.deepEqual(
    events.map(([name]) => name),
    Array(2).fill(["start", "end", "error", "asyncStart", "asyncEnd"]).flat(),
  );
  assert.equal(events[2][1].error.kind, "constraint");
  assert.ok(!JSON.stringify(events).includes("secret"));
});

test("every operation has one context", async (t) => {
  const db = await database(t);
  const traced = subscribed(t);
  const told = [];
  const operation = async (call, expected) => {
    traced.events.length = 0;
    await call();
    told.push(...traced.ended().map(({ operation }) => operation));
    assert.deepEqual(
      traced.ended().map(({ operation, sql, inTransaction }) => [operation, sql, inTransaction]),
      expected,
      call.toString(),
    );
    assert.equal(traced.events.filter(([name]) => name === "start").length, expected.length);
  };
  const [create, select] = ["CREATE TABLE t (a)", "SELECT a FROM t"];
  await operation(() => db.execute(create), [["execute", create, false]]);
  await operation(
    () => db.executeScript("DELETE FROM t; DELETE FROM t"),
    [["executeScript", "DELETE FROM t; DELETE FROM t", false]],
  );
  const insert = "INSERT INTO t VALUES (?)";
  await operation(() => db.executeMany(insert, [[1], [2]]), [["executeMany", insert, false]]);
  await operation(() => db.batch([select]), [["batch", undefined, false]]);
  await operation(() => db.sql`SELECT ${7}`, [["query", "SELECT ?", false]]);
  await operation(() => db.queryOne(select), [["queryOne", select, false]]);
  await operation(() => db.queryJson(select), [["queryJson", select, false]]);
  await operation(async () => {
    for await (const _ of db.stream(select));
  }, [["batches", select, false]]);
  await operation(
    () => db.transaction((tx) => tx.query(select)),
    [
      ["begin", undefined, false],
      ["query", select, true],
      ["commit", undefined, true],
    ],
  );
  await operation(
    () => assert.rejects(db.transaction(() => Promise.reject(new Error("no")))),
    [
      ["begin", undefined, false],
      ["rollback", undefined, true],
    ],
  );
  await operation(() => db.prepare(select), [["prepare", select, false]]);
  await operation(() => db.checkpoint(), [["checkpoint", undefined, false]]);
});

test("a call of a worker, of a write and of a stream tells where it ran and what it did", async (t) => {
  const db = await database(t, { tuning: { inline: false } });
  await db.execute("CREATE TABLE t (a)");
  const traced = subscribed(t);
  await db.query(`${numbers(20_000)} SELECT x FROM c`);
  await db.execute("INSERT INTO t VALUES (1), (2)");
  for await (const _ of db.stream(`${numbers(20_000)} SELECT x FROM c`));
  const [query, insert, stream] = traced.ended();
  assert.deepEqual([query.ranOn, query.rows], ["reader", 20_000]);
  assert.ok(["writer", "group"].includes(insert.ranOn));
  assert.equal(insert.changes, 2);
  assert.deepEqual([stream.ranOn, stream.rows], ["reader", 20_000]);
});

test("calls side by side are told apart", async (t) => {
  const db = await database(t, { tuning: { inline: false } });
  const traced = subscribed(t);
  const counts = Array.from({ length: 50 }, (_, at) => at + 1);
  await Promise.all(counts.map((count) => db.query(`${numbers(count)} SELECT x FROM c`)));
  for (const { sql, rows } of traced.ended()) {
    assert.equal(sql, `${numbers(rows)} SELECT x FROM c`);
  }
  assert.equal(traced.ended().length, 50);
});

test("a call that is given up has the reason as its error", async (t) => {
  const db = await database(t);
  const traced = subscribed(t);
  const controller = new AbortController();
  const call = db.query(ENDLESS, [], { signal: controller.signal });
  controller.abort(new RangeError("given up"));
  await assert.rejects(call, RangeError);
  assert.ok(traced.ended()[0].error instanceof RangeError);
});

test("a store that is bound to the channel is that of the call", async (t) => {
  const db = await database(t);
  const storage = new AsyncLocalStorage();
  channel.start.bindStore(storage, ({ operation }) => operation);
  t.after(() => channel.start.unbindStore(storage));
  const seen = [];
  const hear = () => seen.push(storage.getStore());
  channel.asyncEnd.subscribe(hear);
  t.after(() => channel.asyncEnd.unsubscribe(hear));
  await db.queryValue("SELECT 1");
  await db.execute("CREATE TABLE t (a)");
  assert.deepEqual(seen, ["queryValue", "execute"]);
  assert.equal(storage.getStore(), undefined);
});

test("without a subscriber nothing is asked of the engine, also after there was one", async (t) => {
  const db = await database(t);
  const { listen, event } = native;
  const asked = [];
  native.listen = (_, on) => (asked.push(on), listen(_, on));
  native.event = () => (asked.push("event"), event());
  t.after(() => Object.assign(native, { listen, event }));
  const calls = async () => {
    await db.query("SELECT 1");
    await db.executeMany("SELECT ?", []).catch(() => {});
    await db.transaction(() => {});
    for await (const _ of db.stream("SELECT 1"));
  };
  await calls();
  assert.deepEqual(asked, []);
  const { end } = subscribed(t);
  const call = db.query(ENDLESS, [], { timeout: 1 });
  end();
  await assert.rejects(call, { kind: "timeout" });
  assert.deepEqual([asked[0], asked.at(-1)], [true, false]);
  asked.length = 0;
  await calls();
  assert.deepEqual(asked, []);
});

test("a subscriber that throws does not disturb the call", async () => {
  const { code, output, errors } = await run(`
    import { tracingChannel } from "node:diagnostics_channel";
    process.on("uncaughtException", (error) => console.log(error.message));
    const fails = (name) => () => { throw new Error(name); };
    const names = ["start", "end", "asyncStart", "asyncEnd"];
    tracingChannel("flatwater.statement").subscribe(Object.fromEntries(names.map((name) => [name, fails(name)])));
    const db = await open(":memory:");
    console.log(await db.queryValue("SELECT 7"));
    await db.close();`);
  assert.equal(code, 0, errors);
  assert.deepEqual(output.trim().split("\n").sort(), ["7", "asyncEnd", "asyncStart", "end", "start"]);
});

test("NODE_DEBUG=flatwater writes a line for each call, without values", async (t) => {
  const program = `
    const db = await open(":memory:");
    await db.query("SELECT ? AS a", ["secret"]);
    await db.query("SELECT * FROM nowhere").catch(() => {});
    await db.close();`;
  process.env.NODE_DEBUG = "flatwater";
  t.after(() => delete process.env.NODE_DEBUG);
  const { code, errors } = await run(program);
  assert.equal(code, 0, errors);
  const lines = errors.trim().split("\n");
  assert.match(lines[0], /FLATWATER \d+: opened :memory:/);
  assert.match(lines[1], /query [\d.]+ ms \(queue .*\), on [a-z]+, rows 1: SELECT \? AS a$/);
  assert.match(lines[2], /failed: no such table: nowhere.*: SELECT \* FROM nowhere$/);
  assert.match(lines[3], /closed :memory:/);
  assert.ok(!errors.includes("secret"));
  delete process.env.NODE_DEBUG;
  assert.equal((await run(program)).errors, "");
});

test("the stack of an error shows who made the call, though the frames of tracing come first", async (t) => {
  const db = await database(t);
  subscribed(t);
  const theHelper = (value) => db.queryOne("SELECT ?", [value]);
  const theCaller = async () => await theHelper(undefined);
  const { stackTraceLimit } = Error;
  await assert.rejects(theCaller(), ({ stack }) => stack.includes("theHelper") && stack.includes("theCaller"));
  assert.equal(Error.stackTraceLimit, stackTraceLimit);
});
