// What a call was given, and its place among others, are those of the moment when it was made.
import assert from "node:assert/strict";
import { test } from "node:test";
import { open, sql } from "../../dist/index.mjs";
import { database, folder, until } from "../support.mjs";

/** So many that they are read in several slices. */
const MANY = 5_000;
const INSERT = "INSERT INTO t VALUES (?, ?)";
const FORMS = {
  executeMany: (on, rows, options) => on.executeMany(INSERT, rows, options),
  batch: (on, rows, options) =>
    on.batch(
      rows.map((row) => [INSERT, row]),
      options,
    ),
  "rows of an iterable": (on, rows, options) => on.executeMany(INSERT, new Set(rows), options),
  "statements of an iterable": (on, rows, options) => on.batch(new Set(rows.map((row) => [INSERT, row])), options),
};

async function filled(t, path) {
  const db = path === undefined ? await database(t) : await open(path);
  t.after(() => db.close());
  await db.execute("CREATE TABLE t (a, b)");
  return db;
}

const rowsOf = (count, from = 0) => Array.from({ length: count }, (_, at) => [from + at, "x".repeat(100)]);
const count = (on) => on.queryValue("SELECT count(*) FROM t");

for (const path of [undefined, ":memory:"]) {
  const place = path ?? "in a file";
  for (const [name, call] of Object.entries(FORMS)) {
    test(`${name}, ${place}: calls that are made later come later, also in a transaction`, async (t) => {
      const db = await filled(t, path);
      for (const rows of [1, 100, MANY].map((count) => rowsOf(count))) {
        await Promise.all([call(db, rows), db.execute("DELETE FROM t")]);
        assert.equal(await count(db), 0);
        await db.transaction((tx) => Promise.all([call(tx, rows), tx.execute("DELETE FROM t")]));
        assert.equal(await count(db), 0);
        await db.transaction(async (tx) => {
          const many = call(tx, rows);
          await tx.transaction((inner) => inner.execute("DELETE FROM t"));
          assert.equal(await many.then(() => count(tx)), 0);
        });
      }
    });

    test(`${name}, ${place}: it is a part of the transaction whose function does not await it`, async (t) => {
      const db = await filled(t, path);
      let stored;
      await db.transaction((tx) => void (stored = call(tx, rowsOf(MANY))));
      await stored;
      assert.equal(await count(db), MANY);
      await assert.rejects(
        db.transaction((tx) => {
          stored = call(tx, rowsOf(MANY));
          stored.catch(() => {});
          throw new RangeError("rolled back");
        }),
        RangeError,
      );
      await Promise.allSettled([stored]);
      assert.equal(await count(db), MANY);
    });
  }

  test(`${place}: several of them run in the order of their calls, and none holds up another queue`, async (t) => {
    const db = await filled(t, path);
    const calls = [];
    for (let at = 0; at < 6; at++) {
      calls.push(FORMS[Object.keys(FORMS)[at % 4]](db, [[at, "first"], ...rowsOf(at % 2 === 0 ? MANY : 2)]));
      calls.push(db.execute("INSERT INTO t VALUES (?, 'one')", [at]));
      calls.push(db.query("INSERT INTO t VALUES (?, 'returned') RETURNING a", [at]));
    }
    await Promise.all(calls);
    const order = await db.query("SELECT a, b FROM t WHERE b NOT LIKE 'x%' ORDER BY rowid", [], { rows: "array" });
    const expected = [0, 1, 2, 3, 4, 5].flatMap((at) => ["first", "one", "returned"].map((b) => [at, b]));
    assert.deepEqual(order, expected);
  });

  test(`${place}: a close finishes what was called before it, and refuses what comes after`, async (t) => {
    const file = path ?? `${folder(t)}/closed.db`;
    const db = await filled(t, file);
    const many = db.executeMany(INSERT, rowsOf(MANY));
    const closed = db.close();
    await assert.rejects(db.execute("DELETE FROM t"), { kind: "closed" });
    assert.equal(await many, MANY);
    await closed;
  });
}

test("a read in a file does not wait for rows that are being read", async (t) => {
  const db = await filled(t);
  const events = [];
  const many = db.executeMany(INSERT, rowsOf(100_000)).then(() => events.push("many"));
  await db.query("SELECT 1").then(() => events.push("read"));
  await many;
  assert.deepEqual(events, ["read", "many"]);
});

test("what waits behind rows ends at its deadline and by its signal, and does not hold up what comes after", async (t) => {
  const db = await filled(t);
  let isOver = false;
  function* slow() {
    while (!isOver) yield [1, 1];
  }
  const many = db.executeMany(INSERT, slow());
  const controller = new AbortController();
  const late = db.execute("INSERT INTO t VALUES ('late', 0)", [], { timeout: 20 });
  const given = db.execute("INSERT INTO t VALUES ('given up', 0)", [], { signal: controller.signal });
  const last = db.execute("INSERT INTO t VALUES ('last', 0)", [], { timeout: 60_000 });
  await assert.rejects(late, { kind: "timeout", applied: "no" });
  controller.abort();
  await assert.rejects(given, { name: "AbortError" });
  isOver = true;
  await many;
  await last;
  assert.deepEqual(await db.queryValues("SELECT a FROM t WHERE b = 0"), ["last"]);
});

test("rows that are given up, or fail, let those behind them go on", async (t) => {
  const db = await filled(t);
  const controller = new AbortController();
  const given = db.executeMany(INSERT, rowsOf(100_000), { signal: controller.signal });
  const wrong = db.executeMany(INSERT, [...rowsOf(MANY), [1, undefined]]);
  const throws = db.batch(
    (function* () {
      yield* rowsOf(MANY).map((row) => [INSERT, row]);
      throw new RangeError("of the program");
    })(),
  );
  const behind = db.execute("INSERT INTO t VALUES ('behind', 0)");
  setImmediate(() => controller.abort());
  await assert.rejects(given, { name: "AbortError" });
  await assert.rejects(wrong, { kind: "misuse", message: /^row 5000: / });
  await assert.rejects(throws, RangeError);
  await behind;
  assert.deepEqual(await db.queryValues("SELECT a FROM t"), ["behind"]);
});

test("an async iterable may await calls that come after its own", async (t) => {
  const db = await filled(t);
  await db.executeMany(INSERT, rowsOf(3_000));
  async function* rows(on) {
    for await (const { a } of on.stream("SELECT a FROM t WHERE a < 3000")) {
      if (a % 1_000 === 0) await on.execute("INSERT INTO t VALUES (?, 'log')", [a + 1_000_000]);
      yield [a + 10_000, "copied"];
    }
  }
  assert.equal(await db.executeMany(INSERT, rows(db)), 3_000);
  await db.transaction(async (tx) => assert.equal(await tx.executeMany(INSERT, rows(tx)), 3_000));
});

/** Changes all that was given: the array, its rows, their buffers and dates. */
function spoil(rows) {
  for (const row of rows) {
    for (const value of Object.values(row)) {
      if (ArrayBuffer.isView(value)) new Uint8Array(value.buffer, value.byteOffset).fill(0);
      if (value instanceof ArrayBuffer) new Uint8Array(value).fill(0);
      if (value instanceof Date) value.setTime(0);
    }
    for (const name of Object.keys(row)) row[name] = "changed";
    row.push?.("one more");
  }
  rows.length = 0;
}

const VALUES = [
  (at) => [at, "text"],
  (at) => [at, new Uint8Array([1, 2, 3])],
  (at) => [at, new Uint8Array([1, 2, 3]).buffer],
  (at) => [at, new DataView(new Uint8Array([9, 1, 2, 3]).buffer, 1)],
  (at) => [at, new Date(86_400_000)],
  (at) => ({ a: at, b: new Uint8Array([1, 2, 3]) }),
];
const NAMED = "INSERT INTO t VALUES (:a, :b)";

test("what is changed after the call is not seen: arrays, rows, buffers and dates", async (t) => {
  const db = await filled(t);
  for (const size of [1, MANY]) {
    for (const of of VALUES) {
      const made = () => Array.from({ length: size }, (_, at) => of(at));
      const text = Array.isArray(of(0)) ? INSERT : NAMED;
      const stored = await Promise.all([of(0)].map((row) => db.query(`${text} RETURNING b`, row)));
      const [[{ b }]] = stored;
      const calls = {
        executeMany: (rows) => db.executeMany(text, rows),
        batch: (rows) => db.batch(rows.map((row) => [text, row])),
        template: (rows) => db.batch(rows.map((row) => sql`INSERT INTO t VALUES (${row[0]}, ${row[1]})`)),
        iterable: (rows) => db.executeMany(text, rows.values()),
      };
      if (text === NAMED) delete calls.template;
      for (const [name, call] of Object.entries(calls)) {
        await db.execute("DELETE FROM t");
        const rows = made();
        const pending = call(rows);
        // The iterator of an array reads the array as it goes.
        if (name !== "iterable") spoil(rows);
        await pending;
        const all = await db.query("SELECT a, b FROM t ORDER BY a", [], { rows: "array" });
        assert.equal(all.length, size, name);
        all.forEach((row, at) => assert.deepEqual(row, [at, b], name));
      }
    }
  }
});

test("an iterable may yield one object again and again", async (t) => {
  const db = await filled(t);
  function* rows() {
    const row = [0, new Uint8Array(1)];
    for (let at = 0; at < MANY; at++) {
      row[0] = row[1][0] = at;
      yield row;
    }
  }
  async function* later() {
    yield* rows();
  }
  for (const of of [rows(), later()]) {
    assert.equal(await db.executeMany(INSERT, of), MANY);
    const all = await db.query("SELECT a, b FROM t ORDER BY a", [], { rows: "array" });
    all.forEach((row, at) => assert.deepEqual(row, [at, new Uint8Array([at])]));
    await db.execute("DELETE FROM t");
  }
});

test("the values of one call, of a bound statement and of a live query are those of the call", async (t) => {
  const db = await filled(t);
  let release;
  const held = db.transaction(() => new Promise((resolve) => (release = resolve)));
  await until(() => release !== undefined);
  const [row, bytes] = [[1, "given"], new Uint8Array([7])];
  const calls = [db.execute(INSERT, row), db.query(`${INSERT} RETURNING a`, [2, bytes]), db.batch([[INSERT, row]])];
  const bound = (await db.prepare(INSERT)).bind([3, bytes]);
  spoil([row]);
  bytes.fill(0);
  release();
  await Promise.all([held, ...calls]);
  await bound.run();
  const all = await db.query("SELECT a, b FROM t ORDER BY a, rowid", [], { rows: "array" });
  const seven = new Uint8Array([7]);
  assert.deepEqual(all, [
    [1, "given"],
    [1, "given"],
    [2, seven],
    [3, seven],
  ]);
  const params = [1];
  const live = db.live("SELECT rowid AS id, b FROM t WHERE a = ?", params);
  params[0] = 2;
  const changes = live.changes();
  assert.deepEqual(
    (await changes.next()).value.full.map(({ b }) => b),
    ["given", "given"],
  );
  await changes.return();
});
