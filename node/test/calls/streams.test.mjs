// Results that are fetched as they are needed: batches, rows one by one, and streams of the web.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RowStream } from "../../dist/index.mjs";
import { database, ENDLESS, numbers, until } from "../support.mjs";

/** More than are in the first batch. */
const MANY = 5_000;
const text = `${numbers(MANY)} SELECT x FROM c`;
const all = Array.from({ length: MANY }, (_, at) => ({ x: at + 1 }));
const END = { done: true, value: undefined };

async function collected(stream) {
  const rows = [];
  for await (const row of stream) rows.push(row);
  return rows;
}

test("every row comes once and in order, however many are awaited at once", async (t) => {
  const db = await database(t);
  assert.deepEqual(await collected(db.stream(text)), all);
  const stream = db.stream(text);
  assert.ok(stream instanceof RowStream);
  const order = [];
  const awaited = Array.from({ length: MANY + 3 }, async (_, at) => {
    const { value } = await stream.next();
    order.push(at);
    return value;
  });
  assert.deepEqual(await Promise.all(awaited), [...all, undefined, undefined, undefined]);
  assert.deepEqual(order, [...awaited.keys()]);
  assert.equal(db.stats().readersHeld, 0);
});

test("a stream that was left has no further row, and frees its connection", async (t) => {
  const db = await database(t, { readers: 1 });
  const endless = ENDLESS.replace("count(*)", "x");
  const ends = [
    (stream) => stream.return(),
    (stream) => stream[Symbol.asyncDispose](),
    (stream) => stream.readable().cancel(),
  ];
  for (const end of ends) {
    const stream = db.stream(endless);
    assert.deepEqual(await stream.next(), { done: false, value: { x: 1 } });
    await end(stream);
    assert.deepEqual(await stream.next(), END);
    await until(() => db.stats().readersHeld === 0);
  }
});

test("a part that is awaited when the stream ends is the end", async (t) => {
  const db = await database(t);
  for (const begin of [() => db.stream(ENDLESS), () => db.batches(ENDLESS)]) {
    const stream = begin();
    const next = stream.next();
    await stream.return();
    assert.deepEqual(await next, END);
    await until(() => db.stats().readersHeld === 0);
  }
});

test("an error is that of the row that is awaited, and the end follows", async (t) => {
  const db = await database(t);
  const fails = `${numbers(3_000)} SELECT iif(x < 3000, x, 9007199254740993) AS x FROM c`;
  for (const begin of [() => db.stream("SELEC"), () => db.stream("SELECT ?", [NaN]), () => db.stream(fails)]) {
    const stream = begin();
    await assert.rejects(collected(stream));
    assert.deepEqual(await stream.next(), END);
    await until(() => db.stats().readersHeld === 0);
  }
});

test("a loop of rows that are there at once lets timers run", async (t) => {
  const db = await database(t);
  let turns = 0;
  let goesOn = true;
  const turn = () => goesOn && (turns++, setImmediate(turn));
  const stream = db.stream(text);
  await stream.next();
  turn();
  const before = turns;
  // All of them are in the first batch.
  for (let row = 2; row <= 1_000; row++) {
    const { value } = await stream.next();
    assert.equal(value.x, row);
    if (row % 64 === 0) {
      for (const end = performance.now() + 2; performance.now() < end;);
    }
  }
  goesOn = false;
  assert.ok(turns - before >= 5, `${turns - before} turns`);
  await stream.return();
});

test("short results one after the other let timers run", async (t) => {
  const db = await database(t);
  let ticks = 0;
  const interval = setInterval(() => ticks++, 1);
  t.after(() => clearInterval(interval));
  while (ticks < 20) {
    for await (const _ of db.stream("SELECT 1"));
  }
});

test("rows and batches are streams of the web", async (t) => {
  const db = await database(t);
  assert.deepEqual(await collected(db.stream(text).readable()), all);
  assert.deepEqual((await collected(db.batches(text).readable())).flat(), all);
  await assert.rejects(db.stream("SELEC").readable().getReader().read(), { kind: "sql" });
});

test("a prepared statement's rows come one by one, as it returns them", async (t) => {
  const db = await database(t);
  const statement = await db.prepare("SELECT ? AS a, 2 AS b");
  const [object] = await collected(statement.iterate(1));
  assert.deepEqual(object, { a: 1, b: 2 });
  assert.deepEqual(await collected(statement.raw().iterate(1)), [[1, 2]]);
  assert.deepEqual(await collected(statement.pluck().iterate(1)), [1]);
  statement.bind(3);
  for (const call of [() => statement.iterate(4).next(), () => statement.run(4), () => statement.get(4)]) {
    const promise = call();
    await assert.rejects(promise, { kind: "misuse", message: "the statement has its values already" });
  }
  await assert.rejects(statement.all(4), { kind: "misuse" });
});

test("JSON as a stream is the document that a query returns, and a response takes it", async (t) => {
  const db = await database(t);
  const rows = `${numbers(MANY)} SELECT x, 'ä ' || x AS text, NULL AS empty, x / 8.0 AS real, x'01ff' AS bytes FROM c`;
  for (const sql of [rows, "SELECT 1 AS one", "SELECT 1 AS one WHERE 0"]) {
    const response = new Response(db.streamJson(sql));
    assert.equal(await response.text(), (await db.queryJson(sql)).toString());
  }
  const sql = "SELECT 9007199254740993 AS a, '[1,{}]' AS a UNION ALL SELECT ?, '2'";
  const options = { arrays: true, bigIntegersAsStrings: true, embed: ["a"] };
  const expected = '[["9007199254740993",[1,{}]],[7,2]]';
  assert.equal((await db.queryJson(sql, [7], options)).toString(), expected);
  assert.equal(await new Response(db.streamJson(sql, [7], options)).text(), expected);
  assert.equal(db.stats().readersHeld, 0);
});

test("a stream of JSON ends with its error, and says whether its statement was executed", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  const read = (...given) => new Response(db.streamJson(...given)).text();
  await assert.rejects(read("SELEC"), { kind: "sql" });
  await assert.rejects(read("SELECT 1", [], { array: true }), { kind: "misuse", message: /arrays/ });
  await assert.rejects(read("SELECT 1", [], { timeout: -1 }), { kind: "misuse" });
  await assert.rejects(read("SELECT 1 AS a, 2 AS a"), { kind: "misuse", message: /two columns are named a/ });
  const later = `${numbers(MANY)} SELECT iif(x < ${MANY}, 'text', CAST(x'ff' AS TEXT)) AS a FROM c`;
  await assert.rejects(read(later), (error) => error.kind === "decode" && error.applied === undefined);
  const write = "INSERT INTO t VALUES (1) RETURNING CAST(x'ff' AS TEXT) AS a";
  await assert.rejects(read(write), { kind: "decode", applied: "yes", message: /; the call was executed/ });
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), 1);
  await until(() => db.stats().readersHeld === 0);
});

test("a stream of JSON that is cancelled or aborted frees its connection", async (t) => {
  const db = await database(t, { readers: 1 });
  const endless = ENDLESS.replace("count(*)", "x");
  const reader = db.streamJson(endless).getReader();
  assert.ok(
    Buffer.from((await reader.read()).value)
      .toString()
      .startsWith('[{"x":1},{"x":2}'),
  );
  await reader.cancel();
  await until(() => db.stats().readersHeld === 0);
  const controller = new AbortController();
  const text = new Response(db.streamJson(ENDLESS, [], { signal: controller.signal })).text();
  controller.abort(new RangeError("given up"));
  await assert.rejects(text, RangeError);
  await until(() => db.stats().readersHeld === 0);
});
