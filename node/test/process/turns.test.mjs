// What is large is taken and made in several turns of the loop.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { database, numbers } from "../support.mjs";

const MANY = 100_000;
const MANY_ROWS = `${numbers(MANY)} SELECT x AS id, 'text ' || x AS a FROM c`;

const { native } = createRequire(import.meta.url)("../../dist/native/addon.js");

/** Resolves with the result of a call, and fails if its chunks, or its rows of parameters, were all taken in a few turns. */
async function inTurns(call) {
  let [turn, counts] = [0, true];
  const took = new Set();
  const count = () => {
    turn++;
    if (counts) setImmediate(count);
  };
  count();
  const { poll, addRows, addPlain } = native;
  native.poll = (token) => {
    const answer = poll(token);
    if (typeof answer === "string") took.add(turn);
    return answer;
  };
  native.addRows = (...given) => (took.add(turn), addRows(...given));
  native.addPlain = (...given) => (took.add(turn), addPlain(...given));
  try {
    return await call();
  } finally {
    counts = false;
    Object.assign(native, { poll, addRows, addPlain });
    assert.ok(took.size >= 4, `it took ${took.size} turns`);
  }
}

async function filled(t) {
  const db = await database(t);
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  await db.execute(`INSERT INTO t ${MANY_ROWS}`);
  return db;
}

test("the result of a live query takes several turns", async (t) => {
  const db = await filled(t);
  const live = db.live("SELECT id, a FROM t");
  const { value } = await inTurns(() => live.next());
  assert.equal(value.length, MANY);
  assert.deepEqual(value[MANY - 1], { id: MANY, a: `text ${MANY}` });
  await live.return();
});

test("results of a group take several turns, and come whole", async (t) => {
  const db = await filled(t);
  const group = db.liveGroup(["SELECT a FROM t WHERE id < 0", "SELECT id, a FROM t", "SELECT count(*) AS n FROM t"]);
  const { value } = await inTurns(() => group.next());
  assert.deepEqual([value[0], value[1].length, value[2]], [[], MANY, [{ n: MANY }]]);
  await group.return();
});

test("changes take several turns, and each pair is of one row", async (t) => {
  const db = await filled(t);
  const changes = db.live("SELECT id, a FROM t").changes();
  const next = async () => (await inTurns(() => changes.next())).value;
  assert.equal((await next()).full.length, MANY);
  await db.execute("UPDATE t SET a = id");
  const { full, inserted, updated, deleted } = await next();
  assert.deepEqual([full, inserted, updated.length, deleted], [undefined, [], MANY, []]);
  for (const { old, new: now } of updated) {
    assert.ok(old.id === now.id && old.a === `text ${old.id}` && now.a === now.id);
  }
  await db.batch(["DELETE FROM t", `INSERT INTO t SELECT id + ${MANY}, a FROM (${MANY_ROWS})`]);
  const other = await next();
  assert.deepEqual([other.inserted.length, other.updated.length, other.deleted.length], [MANY, 0, MANY]);
  await changes.return();
});

test("the results of a batch take several turns: of many statements, and of many rows", async (t) => {
  const db = await filled(t);
  const statements = Array.from({ length: MANY }, (_, at) => ["UPDATE t SET a = ? WHERE id = ?", [at, at + 1]]);
  const results = await inTurns(() => db.batch(statements));
  assert.deepEqual(
    [results.length, results[MANY - 1]],
    [MANY, { changes: 1, lastInsertRowid: null, columns: [], rows: undefined }],
  );
  const [one, none, many] = await inTurns(() =>
    db.batch([
      "UPDATE t SET a = 1 WHERE id = 1 RETURNING id",
      "DELETE FROM t WHERE id < 0 RETURNING id",
      "DELETE FROM t RETURNING id, a",
    ]),
  );
  assert.deepEqual([one.rows, none.rows, many.rows.length, many.changes], [[{ id: 1 }], [], MANY, MANY]);
});

test("rows of parameters of an iterable take several turns", async (t) => {
  const db = await database(t);
  await db.execute("CREATE TABLE t (a)");
  function* rows() {
    for (let a = 0; a < MANY; a++) yield [a];
  }
  assert.equal(await inTurns(() => db.executeMany("INSERT INTO t VALUES (?)", rows())), MANY);
});

test("values take several turns", async (t) => {
  const db = await filled(t);
  // Of a write there are no parts: all rows are there at once.
  const values = await inTurns(() => db.queryValues("UPDATE t SET a = a RETURNING id"));
  assert.deepEqual([values.length, values[0], values[MANY - 1]], [MANY, 1, MANY]);
});

test("what the program makes of rows takes several turns", async (t) => {
  const db = await database(t);
  let [turn, counts] = [0, true];
  const count = () => {
    turn++;
    if (counts) setImmediate(count);
  };
  count();
  const parsed = new Set();
  const parse = (row) => (parsed.add(turn), JSON.parse(JSON.stringify(row)));
  const rows = await db.query(MANY_ROWS, [], { as: { parse } });
  counts = false;
  assert.deepEqual([rows.length, rows[MANY - 1].id], [MANY, MANY]);
  assert.ok(parsed.size >= 4, `it took ${parsed.size} turns`);
});

test("what is made for the columns of a live query is made once", async (t) => {
  const db = await database(t, { readers: 1 });
  await db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
  const changes = db.live("SELECT id, a FROM t").changes();
  await changes.next();
  const { columns } = native;
  let asked = 0;
  native.columns = (schema) => (asked++, columns(schema));
  t.after(() => (native.columns = columns));
  for (let at = 0; at < 200; at++) {
    await db.execute("INSERT INTO t VALUES (?, ?)", [at, `text ${at}`]);
    assert.deepEqual((await changes.next()).value.inserted, [{ id: at, a: `text ${at}` }]);
  }
  assert.ok(asked <= 8, `${asked} times`);
  await changes.return();
});
