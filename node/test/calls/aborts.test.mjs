// Every kind of call is given up by its signal, at each stage: when it is made, while it waits, and while it runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { database, ENDLESS, folder, numbers, run, until } from "../support.mjs";

const reason = new RangeError("given up");
const isReason = (error) => error === reason;
const INSERT = `INSERT INTO t ${ENDLESS.replace("count(*)", "x")}`;

/** Those that write, and do not end by themselves. */
const WRITES = {
  execute: (db, options) => db.execute(INSERT, [], options),
  executeMany: (db, options) => db.executeMany(INSERT.replace("SELECT x", "SELECT x + ?"), [[1], [2]], options),
  batch: (db, options) => db.batch(["INSERT INTO t VALUES (1)", INSERT], options),
  executeScript: (db, options) => db.executeScript(`INSERT INTO t VALUES (1); ${INSERT}`, options),
  "rows of RETURNING": (db, options) => db.query(`${INSERT} RETURNING a`, [], options),
  "JSON of RETURNING": (db, options) => db.queryJson(`${INSERT} RETURNING a`, [], options),
  "a write in a transaction": (db, options) => db.transaction((tx) => tx.execute(INSERT, [], options)),
  "a write in a nested transaction": (db, options) =>
    db.transaction((tx) => tx.transaction((inner) => inner.execute(INSERT, [], options))),
  migrate: (db, options) => db.migrate([["1", `CREATE TABLE u AS ${ENDLESS}`]], options),
};

/** Those that read, and do not end by themselves. */
const READS = {
  query: (db, options) => db.query(ENDLESS, [], options),
  queryOne: (db, options) => db.queryOne(ENDLESS, [], options),
  queryOptional: (db, options) => db.queryOptional(ENDLESS, [], options),
  queryValue: (db, options) => db.queryValue(ENDLESS, [], options),
  queryOptionalValue: (db, options) => db.queryOptionalValue(ENDLESS, [], options),
  queryValues: (db, options) => db.queryValues(ENDLESS, [], options),
  "a class of the program": (db, options) => db.query(ENDLESS, [], { ...options, as: class {} }),
  queryJson: (db, options) => db.queryJson(ENDLESS, [], options),
  batches: (db, options) => db.batches(ENDLESS, [], options).next(),
  stream: (db, options) => db.stream(ENDLESS, [], options).next(),
  "a later batch": async (db, options) => {
    const batches = db.batches(`${numbers(2_000)} SELECT x FROM c UNION ALL SELECT * FROM (${ENDLESS})`, [], options);
    for await (const _ of batches);
  },
  "a query in a transaction": (db, options) => db.transaction((tx) => tx.query(ENDLESS, [], options)),
  "a query in a snapshot": async (db, options) => {
    const snapshot = await db.snapshot();
    await snapshot.query(ENDLESS, [], options).finally(() => snapshot.close());
  },
};

/** Those that may have ended before they are given up. */
const SHORT = {
  begin: (db, options) => db.transaction((tx) => tx.execute("INSERT INTO t VALUES (1)"), options),
  snapshot: (db, options) => db.snapshot(options).then((snapshot) => snapshot.close()),
  prepare: (db, options) => db.prepare("SELECT 1", options),
  checkpoint: (db, options) => db.checkpoint("truncate", options),
  backup: (db, options, to) => db.backup(to, options),
  vacuum: (db, options) => db.vacuum(options),
  vacuumInto: (db, options, to) => db.vacuumInto(to, options),
  incrementalVacuum: (db, options) => db.incrementalVacuum(10, options),
  serialize: (db, options) => db.serialize(options),
  "opening a large value": (db, options) => db.openBlob("large", "b", 1, options).then((blob) => blob.close()),
  "reading a large value": async (db, options) => {
    const blob = await db.openBlob("large", "b", 1);
    await blob.read(1_000_000, options).finally(() => blob.close());
  },
  "writing a large value": async (db, options) => {
    const blob = await db.openBlob("large", "b", 1);
    await blob.write(new Uint8Array(1_000_000), options).finally(() => blob.close());
  },
  "a live query": async (db, options) => {
    for await (const _ of db.live("SELECT a FROM t", [], options)) break;
  },
  "a group of live queries": async (db, options) => {
    for await (const _ of db.liveGroup(["SELECT a FROM t", "SELECT 1"], options)) break;
  },
  changes: async (db, options) => {
    for await (const _ of db.live("SELECT rowid AS id, a FROM t", [], options).changes()) break;
  },
  "many rows of parameters": (db, options) =>
    db.executeMany("INSERT INTO t VALUES (?)", Array(50_000).fill([1]), options),
  "rows that are made": (db, options) => db.query(`${numbers(50_000)} SELECT x, 'text ' || x AS y FROM c`, [], options),
};

/** A signal that is aborted after so many turns of the loop. */
function abortedAfter(turns) {
  const controller = new AbortController();
  const turn = () => (turns-- === 0 ? controller.abort(reason) : setImmediate(turn));
  queueMicrotask(turn);
  return controller.signal;
}

async function filled(t) {
  const db = await database(t, { tuning: { autoVacuum: "incremental" } });
  await db.executeScript("CREATE TABLE t (a); CREATE TABLE large (b); INSERT INTO large VALUES (zeroblob(2000000))");
  return db;
}

/** Nothing is left of what was given up. */
async function expectIdle(db, rows) {
  await until(() => db.stats().readersHeld === 0 && db.stats().live.subscribers === 0);
  assert.equal(await db.queryValue("SELECT count(*) FROM t"), rows);
  await db.execute("INSERT INTO t VALUES (1)");
  await db.execute("DELETE FROM t");
}

const STAGES = [0, 1, 2, 3, 10];

for (const [name, call] of Object.entries({ ...WRITES, ...READS })) {
  test(`${name}: it ends when it is given up, wherever it is, and nothing of it is left`, async (t) => {
    const db = await filled(t);
    for (const turns of STAGES) {
      await assert.rejects(call(db, { signal: abortedAfter(turns) }), isReason, `after ${turns} turns`);
      await expectIdle(db, 0);
    }
  });
}

for (const [name, call] of Object.entries(WRITES)) {
  test(`${name}: it never runs if it is given up while it waits for the writer`, async (t) => {
    const db = await filled(t);
    let release;
    const held = db.transaction(() => new Promise((resolve) => (release = resolve)));
    await until(() => release !== undefined);
    const controller = new AbortController();
    // What begins a transaction itself waits with that.
    const isInside = name.includes("transaction");
    const given = { signal: controller.signal };
    const waits = isInside ? db.transaction(() => assert.fail("it has begun"), given) : call(db, given);
    until(() => db.stats().writesWaiting > 0).then(() => controller.abort(reason));
    await assert.rejects(waits, isReason);
    release();
    await held;
    await expectIdle(db, 0);
  });
}

for (const [name, call] of Object.entries(SHORT)) {
  test(`${name}: it is done or given up, wherever it is, and nothing of it is left`, async (t) => {
    const db = await filled(t);
    const to = folder(t);
    for (const [at, turns] of [...STAGES, ...STAGES].entries()) {
      const isDone = await call(db, { signal: abortedAfter(turns) }, `${to}/${at}.db`).then(
        () => true,
        (error) => assert.ok(isReason(error), error),
      );
      const rows = await db.queryValue("SELECT count(*) FROM t");
      const all = name === "begin" ? 1 : name === "many rows of parameters" ? 50_000 : 0;
      // A write that cannot be interrupted any more is finished, and its call resolves.
      assert.equal(rows, isDone ? all : 0, `after ${turns} turns`);
      await expectIdle(db, rows);
    }
    assert.equal(await db.queryValue("PRAGMA integrity_check"), "ok");
  });
}

const STORED = "INSERT INTO t VALUES (?)";
/** Calls that store one row each. */
const STORES = {
  execute: (on, options) => on.execute(STORED, [1], options),
  executeMany: (on, options) => on.executeMany(STORED, [[1]], options),
  batch: (on, options) => on.batch([[STORED, [1]]], options),
  executeScript: (on, options) => on.executeScript("INSERT INTO t VALUES (1)", options),
  "one row of RETURNING": (on, options) => on.queryOne(`${STORED} RETURNING a`, [1], options),
  "a class of the program": (on, options) => on.query(`${STORED} RETURNING a`, [1], { ...options, as: class {} }),
  "JSON of RETURNING": (on, options) => on.queryJson(`${STORED} RETURNING a`, [1], options),
};

for (const [name, call] of Object.entries(STORES)) {
  test(`${name}: a call that is aborted resolves if it is stored, and otherwise says that it is not`, async (t) => {
    const db = await database(t, { durability: "full" });
    await db.execute("CREATE TABLE t (a)");
    const outcomes = { fulfilled: 0, rejected: 0 };
    for (let round = 0; round < 40; round++) {
      const controller = new AbortController();
      const options = { signal: controller.signal };
      const calls = [call(db, options), call(db, options), db.transaction((tx) => call(tx, options))];
      const turns = round % 8;
      if (turns === 7) setTimeout(() => controller.abort(), 1);
      else abortAfter(controller, turns);
      for (const { status, reason } of await Promise.allSettled(calls)) {
        outcomes[status]++;
        if (status === "rejected") assert.deepEqual([reason.name, reason.applied], ["AbortError", "no"]);
      }
      assert.equal(await db.queryValue("SELECT count(*) FROM t"), outcomes.fulfilled, `round ${round}`);
    }
    assert.ok(outcomes.fulfilled > 0);
  });
}

function abortAfter(controller, turns) {
  const turn = () => (turns-- === 0 ? controller.abort() : setImmediate(turn));
  turn();
}

test("an abort while the rows of a write are made does not undo it, and the call resolves with all of them", async (t) => {
  const db = await filled(t);
  const insert = `INSERT INTO t ${numbers(50_000)} SELECT x FROM c RETURNING a`;
  const { createRequire } = await import("node:module");
  const { native } = createRequire(import.meta.url)("../../dist/native/addon.js");
  const { poll } = native;
  t.after(() => (native.poll = poll));
  for (const options of [{}, { as: { parse: (row) => row } }]) {
    const controller = new AbortController();
    // The first chunk is there: the rest is made in other turns.
    native.poll = (token) => {
      const answer = poll(token);
      if (typeof answer === "string") setImmediate(() => controller.abort(reason));
      return answer;
    };
    const rows = await db.query(insert, [], { ...options, signal: controller.signal });
    assert.deepEqual([rows.length, controller.signal.aborted], [50_000, true]);
  }
});

test("a call that is aborted and fails for another reason says that", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a UNIQUE)");
  await db.execute("INSERT INTO t VALUES (1)");
  const controller = new AbortController();
  let ends = 0;
  const calls = Array.from({ length: 20 }, () =>
    db.execute(STORED, [1], { signal: controller.signal }).finally(() => ends++),
  );
  until(() => ends > 0).then(() => controller.abort(reason));
  for (const { reason: error } of await Promise.allSettled(calls)) {
    assert.ok(error.kind === "constraint" || isReason(error), error);
  }
});

test("a worker that does not return holds an aborted call for a bounded time", async () => {
  // No look of SQLite comes between the steps of one function.
  const preload = `const { setTimeout } = globalThis;
    globalThis.setTimeout = (call, time) => setTimeout(call, time === 5000 ? 10 : time);`;
  const program = `
    const db = await open(":memory:");
    await db.execute("CREATE TABLE t (a)");
    const controller = new AbortController();
    const insert = "INSERT INTO t SELECT instr(zeroblob(400000), CAST(zeroblob(200000) || 'x' AS BLOB))";
    const stuck = db.execute(insert, [], { signal: controller.signal });
    setTimeout(() => controller.abort(new RangeError("given up")), 50);
    const error = await stuck.catch((error) => error);
    console.log(error.kind, error.applied, error.cause?.message);
    process.exit();`;
  const { output, errors } = await run(program, {
    flags: ["--import", `data:text/javascript,${encodeURIComponent(preload)}`],
  });
  assert.equal(output.trim(), "cancelled unknown given up", errors);
});
