// Random programs of Kysely and Drizzle do here what they do on better-sqlite3. FLATWATER_SEED=<number> runs those of a seed again.
//
// What is meant to differ is not in them, or is put right: a number without a fraction is REAL there; a Date and a boolean are refused there;
// the rowid of a statement that inserts nothing is that of an earlier one; a statement that comes after the end of its transaction stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { eq, gte, sql as text } from "drizzle-orm";
import { BetterSQLiteSession } from "drizzle-orm/better-sqlite3/session";
import * as core from "drizzle-orm/sqlite-core";
import { Kysely, sql, SqliteDialect } from "kysely";
import { drizzle } from "../../dist/drizzle.mjs";
import { FlatwaterDialect } from "../../dist/kysely.mjs";
import { randomOf } from "../random.mjs";
import { betterSqlite3, database } from "../support.mjs";

const PROGRAMS = Number(process.env.FLATWATER_PROGRAMS ?? 60);
const seed = Number(process.env.FLATWATER_SEED ?? Date.now() % 2 ** 31);
const Peer = betterSqlite3();
const skip = Peer === undefined && "it needs the better-sqlite3 of lab/peers/node, for this Node";

const TABLES = `DROP TABLE IF EXISTS late; DROP TABLE IF EXISTS child; DROP TABLE IF EXISTS t;
  CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT UNIQUE, c REAL CHECK (c IS NULL OR c < 1000), n INTEGER);
  CREATE TABLE child (t INTEGER REFERENCES t ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED); CREATE TABLE late (v)`;
const TEXTS = ["", "a", "returning", "it's", "/* a */ -- b", "\u{1f600}", "2026-01-02 03:04:05", "x".repeat(300)];

class Undone extends Error {}

/** Bytes are arrays of numbers, and an error is its code, or the name of its class. */
function plain(value) {
  if (value instanceof Uint8Array) return { bytes: [...value] };
  if (value instanceof Date) return { at: value.getTime() };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "bigint") return { big: String(value) };
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, value]) => [name, plain(value)]));
}
const failure = (error) => ({ failed: error instanceof Undone ? "undone" : codeOf(error) });
/** Drizzle's errors have that of the driver as their cause. */
function codeOf(error) {
  for (let of = error; of !== undefined; of = of.cause) {
    if (typeof of.code === "string") return of.code.startsWith("FLATWATER_") ? "misuse" : of.code;
  }
  return error.constructor.name;
}

async function after(ticks, make) {
  for (let tick = 0; tick < ticks; tick++) await null;
  return make();
}

/** Notes whether a transaction was committed, which says nothing if the one around it was not. */
async function committing(run, around) {
  const end = { isCommitted: false, around };
  const result = await run(end);
  end.isCommitted = true;
  return result;
}

/** Random values of a kind, and steps of a program: data, so that it can be shown. */
function stepsOf({ below, pick, list }, kinds, most) {
  const bytes = () => Uint8Array.from(list(9, () => below(256)));
  const number = () => pick([below(10), -below(5), below(1000) / 8, -0.5, 1e300]);
  const value = () => pick([null, number(), number(), pick(TEXTS), bytes(), BigInt(below(1000)) ** 3n]);
  const row = () => ({
    a: value(),
    b: pick(TEXTS),
    c: pick([null, number()]),
    n: below(50),
    flag: below(2) === 1,
    bytes: bytes(),
  });
  const step = (depth) => {
    const kind = pick(kinds);
    const of = { kind, row: row(), id: 1 + below(9), form: below(6), ticks: below(40), fails: below(3) === 0 };
    return kind === "transaction" || kind === "controlled" || kind === "connection"
      ? depth > 1
        ? { ...of, kind: "select" }
        : { ...of, steps: list(5, () => step(depth + 1)) }
      : of;
  };
  return Array.from({ length: 3 + below(most) }, () => step(0));
}

/** A number without a fraction is an integer there only as a bigint. */
const boundThere = (value) =>
  Number.isInteger(value) && !Object.is(value, -0) && Math.abs(value) < 2 ** 53 ? BigInt(value) : value;

/** Runs a step with Kysely. */
async function withKysely(db, { kind, row, id, form, ticks, fails, steps }, { bound, outcome, late }) {
  const values = { a: bound(row.a), b: row.b, c: bound(row.c) };
  switch (kind) {
    case "insert":
      return [
        () => db.insertInto("t").values(values).executeTakeFirst(),
        () =>
          db
            .insertInto("t")
            .values({ ...values, id: bound(id) })
            .returningAll()
            .execute(),
        () =>
          db
            .insertInto("t")
            .values([values, { ...values, b: "second" }])
            .onConflict((on) => on.doNothing())
            .execute(),
        () =>
          db
            .insertInto("child")
            .values({ t: bound(id) })
            .executeTakeFirst(),
        () => sql`INSERT INTO t (b) VALUES (${row.b}), ('returning')`.execute(db),
        () =>
          sql`/* select */ WITH x(b) AS (VALUES (${row.b})) INSERT INTO t (b) SELECT b FROM x RETURNING id, b`.execute(
            db,
          ),
      ][form]();
    case "change":
      return [
        () =>
          db
            .updateTable("t")
            .set({ a: bound(row.a) })
            .where("id", ">", bound(id))
            .executeTakeFirst(),
        () =>
          db
            .updateTable("t")
            .set({ c: bound(row.c) })
            .where("id", "=", bound(id))
            .returning(["id", "c"])
            .execute(),
        () => db.deleteFrom("t").where("id", "=", bound(id)).executeTakeFirst(),
        () => sql`UPDATE t SET a = ${bound(row.a)} -- returning`.execute(db),
        () => sql`DELETE FROM t WHERE b = ${row.b} RETURNING b`.execute(db),
        () =>
          db
            .insertInto("nowhere")
            .values({ a: bound(1) })
            .execute(),
      ][form]();
    case "select":
      return [
        () => db.selectFrom("t").selectAll().orderBy("id").execute(),
        () => db.selectFrom("t").leftJoin("child", "child.t", "t.id").selectAll().orderBy("id").execute(),
        () => sql`SELECT ${bound(row.a)} AS a, 'returning' AS b`.execute(db).then(({ rows }) => rows),
        () => sql`PRAGMA table_info(t)`.execute(db).then(({ rows }) => rows),
        () =>
          db
            .selectFrom("t")
            .select((on) => on.fn.countAll().as("count"))
            .executeTakeFirst(),
        async () => {
          const rows = [];
          for await (const row of db.selectFrom("t").select(["id", "b"]).orderBy("id").stream()) rows.push(row);
          return rows;
        },
      ][form]();
    case "transaction":
      if (db.isTransaction) return undefined;
      return committing((end) =>
        db.transaction().execute(async (trx) => {
          for (const step of steps) await outcome(() => withKysely(trx, step, { bound, outcome, late }));
          late(
            after(ticks, () =>
              trx
                .insertInto("late")
                .values({ v: fails ? "undone" : "kept" })
                .execute(),
            ),
            end,
          );
          if (fails) throw new Undone();
        }),
      );
    case "controlled": {
      if (db.isTransaction) return undefined;
      const trx = await db.startTransaction().execute();
      const inner = await trx.savepoint("one").execute();
      for (const step of steps) await outcome(() => withKysely(inner, step, { bound, outcome, late }));
      const outer = await (form < 3 ? inner.rollbackToSavepoint("one") : inner.releaseSavepoint("one")).execute();
      await outcome(() => outer.insertInto("t").values({ b: "behind" }).executeTakeFirst());
      const ended = (fails ? outer.rollback() : outer.commit()).execute();
      late(outer.insertInto("late").values({ v: "undone" }).execute(), { isCommitted: false });
      return ended.catch(async (error) => {
        await outer.rollback().execute();
        throw error;
      });
    }
    default:
      if (db.isTransaction) return undefined;
      return db.connection().execute(async (connection) => {
        for (const step of steps) await outcome(() => withKysely(connection, step, { bound, outcome, late }));
      });
  }
}

const { blob, integer, numeric, real, sqliteTable, text: textColumn } = core;
const table = sqliteTable("d", {
  id: integer().primaryKey(),
  flag: integer({ mode: "boolean" }),
  seconds: integer({ mode: "timestamp" }),
  at: integer({ mode: "timestamp_ms" }).unique(),
  json: textColumn({ mode: "json" }),
  text: textColumn(),
  bytes: blob({ mode: "buffer" }),
  big: blob({ mode: "bigint" }),
  doc: blob({ mode: "json" }),
  real: real(),
  exact: numeric(),
});
const D = `DROP TABLE IF EXISTS d; CREATE TABLE d (id INTEGER PRIMARY KEY, flag INTEGER, seconds INTEGER, at INTEGER UNIQUE, json TEXT, text TEXT,
  bytes BLOB, big BLOB, doc BLOB, real REAL, exact NUMERIC); DROP TABLE IF EXISTS late; CREATE TABLE late (v)`;

/** Runs a step with Drizzle. `transaction` is a function of its own: that of the other driver takes no async function. */
async function withDrizzle(db, { kind, row, id, form, ticks, fails, steps }, { outcome, late, transaction, around }) {
  const time = new Date(1_767_323_045_678 + row.n);
  const values = {
    flag: row.flag,
    seconds: time,
    at: time,
    json: { text: row.b, n: [row.n, null] },
    text: row.b,
    bytes: Buffer.from(row.bytes),
    big: 12345678901234567890n + BigInt(row.n),
    doc: [row.b],
    real: row.c,
    exact: String(row.n),
  };
  const done = (result) => result.changes;
  switch (kind) {
    case "insert":
      return [
        async () => done(await db.insert(table).values(values)),
        async () =>
          db
            .insert(table)
            .values({ ...values, id })
            .returning(),
        async () =>
          done(
            await db
              .insert(table)
              .values([values, { text: row.b }])
              .onConflictDoNothing(),
          ),
        async () => done(await db.run(text`INSERT INTO d (text) VALUES (${row.b}), ('returning')`)),
        async () => db.all(text`INSERT INTO d (text) VALUES (${row.b}) RETURNING text`),
        async () => done(await db.run(text`INSERT INTO nowhere VALUES (1)`)),
      ][form]();
    case "change":
      return [
        async () => done(await db.update(table).set({ text: row.b, bytes: null }).where(gte(table.id, id))),
        async () =>
          db.update(table).set({ at: time }).where(eq(table.id, id)).returning({ at: table.at, json: table.json }),
        async () => done(await db.delete(table).where(eq(table.id, id))),
        async () => db.delete(table).where(eq(table.text, row.b)).returning(),
        async () => done(await db.run(text`UPDATE d SET text = ${row.b} -- returning`)),
        async () => db.get(text`UPDATE d SET real = 1.5 WHERE id = (SELECT min(id) FROM d) RETURNING id`),
      ][form]();
    case "select":
      return [
        async () => db.select().from(table).orderBy(table.id),
        async () => (await db.select().from(table).where(eq(table.at, time)).get()) ?? null,
        async () =>
          db
            .select({ n: text`count(*)`, at: table.at })
            .from(table)
            .groupBy(table.at)
            .orderBy(table.at),
        async () => db.values(text`SELECT id, big, hex(bytes) FROM d ORDER BY id`),
        async () => db.$count(table),
        async () => db.all(text`SELECT ${row.b} AS a, typeof(at) AS b FROM d ORDER BY id`),
      ][form]();
    default:
      return committing(
        (end) =>
          transaction(db, async (tx) => {
            for (const step of steps)
              await outcome(() => withDrizzle(tx, step, { outcome, late, transaction, around: end }));
            late(
              after(ticks, async () => tx.run(text`INSERT INTO late VALUES (${fails ? "undone" : "kept"})`)),
              end,
            );
            if (fails) throw new Undone();
          }),
        around,
      );
  }
}

const isKept = ({ isCommitted, around }) => isCommitted && (around === undefined || isKept(around));

/** Where nothing was inserted, the rowid there is that of an earlier statement. */
function align(ours, theirs) {
  if (ours === null || theirs === null || typeof ours !== "object" || typeof theirs !== "object") return;
  if (ours.insertId === undefined) {
    delete ours.insertId;
    delete theirs.insertId;
  }
  if (Array.isArray(ours)) ours.forEach((one, at) => align(one, theirs[at] ?? null));
}

/** Runs programs on both sides, and compares what each step came to. */
async function compare(t, { make, kinds, run, schema, end }) {
  const client = await database(t);
  const peer = new Peer(":memory:");
  peer.pragma("foreign_keys = ON");
  t.after(() => peer.close());
  const [ours, theirs] = make(client, peer);
  for (let at = 0; at < PROGRAMS; at++) {
    const program = stepsOf(randomOf(seed + at), kinds, 10);
    await client.executeScript(schema);
    peer.exec(schema);
    const results = [[], []];
    /** What came late: whether it was told that it is stored. */
    const comes = [];
    const sides = [ours, theirs].map((side, of) => ({
      ...side,
      outcome: async (step) => results[of].push(plain((await step().catch(failure)) ?? null)),
      late: (promise, end) => {
        const told = promise.then(() => end).catch(() => ({ isCommitted: false }));
        if (of === 0) comes.push(told);
      },
    }));
    for (const step of [
      ...program,
      ...end.map((form) => ({ kind: "select", form, row: { a: 1, b: "", n: 0, bytes: [] }, id: 1 })),
    ]) {
      const shown = `FLATWATER_SEED=${seed + at}, ${JSON.stringify(step, (_, value) => (typeof value === "bigint" ? String(value) : value))}`;
      for (const side of sides) {
        // What comes late there runs by itself, in the middle of what follows.
        const steps = side === sides[1] ? { ...side, late: (promise) => promise.catch(() => {}) } : side;
        await side.outcome(() => run(side.db, step, steps));
        await new Promise((resolve) => setImmediate(resolve));
      }
      align(...results);
      assert.deepEqual(results[0], results[1], shown);
    }
    const kept = (await Promise.all(comes)).filter(isKept).length;
    assert.deepEqual(
      await client.queryValues("SELECT v FROM late"),
      Array(kept).fill("kept"),
      `FLATWATER_SEED=${seed + at}`,
    );
  }
}

test("random programs of Kysely", { skip }, (t) =>
  compare(t, {
    kinds: ["insert", "insert", "insert", "change", "change", "select", "transaction", "controlled", "connection"],
    run: withKysely,
    schema: TABLES,
    end: [0, 1],
    make: (client, peer) => [
      { db: new Kysely({ dialect: new FlatwaterDialect({ database: client }) }), bound: (value) => value },
      { db: new Kysely({ dialect: new SqliteDialect({ database: peer }) }), bound: boundThere },
    ],
  }),
);

test("random programs of Drizzle", { skip }, (t) =>
  compare(t, {
    kinds: ["insert", "insert", "insert", "change", "change", "select", "transaction"],
    run: withDrizzle,
    schema: D,
    end: [0, 3],
    make: (client, peer) => [
      { db: drizzle(client), transaction: (db, body) => db.transaction(body) },
      { db: drizzleThere(peer), transaction: savepoint(peer) },
    ],
  }),
);

/** As Drizzle's driver makes it, without loading that: it looks for better-sqlite3 beside Drizzle. */
function drizzleThere(peer) {
  const dialect = new core.SQLiteSyncDialect();
  return new core.BaseSQLiteDatabase("sync", dialect, new BetterSQLiteSession(peer, dialect, undefined, {}), undefined);
}

/** A transaction whose function awaits, on a driver that has none. */
function savepoint(peer) {
  return async (db, body) => {
    peer.exec("SAVEPOINT one");
    try {
      const result = await body(db);
      peer.exec("RELEASE one");
      return result;
    } catch (error) {
      peer.exec("ROLLBACK TO one; RELEASE one");
      throw error;
    }
  };
}
