// Kysely on the dialect of this package.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import { Kysely, sql } from "kysely";
import { FlatwaterDialect } from "../../dist/kysely.mjs";
import { open } from "../../dist/index.mjs";
import { insert, kysely, names } from "./kysely/support.mjs";
import { ENDLESS, folder, numbers, until } from "../support.mjs";

const plain = (result) => ({ ...result });

test("rows are written and read", async (t) => {
  const { db } = await kysely(t);
  assert.deepEqual(plain(await insert(db, "Ada")), { insertId: 1n, numInsertedOrUpdatedRows: 1n });
  const many = await db
    .insertInto("person")
    .values([{ name: "Bob" }, { name: "Eve" }])
    .executeTakeFirst();
  assert.deepEqual(plain(many), { insertId: 3n, numInsertedOrUpdatedRows: 2n });
  const returned = await db.insertInto("person").values({ name: "Tim", age: null }).returningAll().executeTakeFirst();
  assert.deepEqual(returned, { id: 4, name: "Tim", age: null });
  const ignored = db.insertInto("person").values({ name: "Ada" });
  const nothing = await ignored.onConflict((conflict) => conflict.doNothing()).executeTakeFirst();
  assert.deepEqual(plain(nothing), { insertId: undefined, numInsertedOrUpdatedRows: 0n });
  const updated = await db.updateTable("person").set({ age: 20 }).where("name", "<", "E").executeTakeFirst();
  assert.equal(updated.numUpdatedRows, 2n);
  const back = await db.updateTable("person").set({ age: 21 }).where("id", "=", 1).returning(["name", "age"]).execute();
  assert.deepEqual(back, [{ name: "Ada", age: 21 }]);
  const deleted = await db.deleteFrom("person").where("age", "is", null).executeTakeFirst();
  assert.equal(deleted.numDeletedRows, 1n);
  const joined = db.selectFrom("person").innerJoin("person as other", "other.id", "person.id").selectAll();
  assert.equal((await joined.execute()).length, 3);
  assert.deepEqual(await db.selectFrom("person").selectAll().where("id", "in", [1, 3]).execute(), [
    { id: 1, name: "Ada", age: 21 },
    { id: 3, name: "Eve", age: 18 },
  ]);
});

test("a column that does not exist is an error, and no row is deleted", async (t) => {
  const { db } = await kysely(t);
  await insert(db, "Ada");
  const missing = { kind: "sql", message: /no such column: "gone"/ };
  await assert.rejects(db.deleteFrom("person").where("gone", "is not", null).execute(), missing);
  await assert.rejects(db.selectFrom("person").select("gone").execute(), missing);
  await assert.rejects(
    db
      .updateTable("person")
      .set({ age: sql.ref("gone") })
      .execute(),
    missing,
  );
  assert.deepEqual(await names(db), ["Ada"]);
});

test("raw SQL is run as what it is, whatever it looks like", async (t) => {
  const { db } = await kysely(t);
  const rows = async (raw) => (await raw.execute(db)).rows;
  assert.deepEqual(await rows(sql`SELECT ${1} AS a`), [{ a: 1 }]);
  assert.deepEqual(await rows(sql`/* a comment */ SELECT 2 AS a`), [{ a: 2 }]);
  assert.deepEqual(await rows(sql`PRAGMA user_version`), [{ user_version: 0 }]);
  assert.deepEqual(await rows(sql`PRAGMA user_version = 3`), []);
  const written = await sql`WITH new(name) AS (VALUES ('Ada')) INSERT INTO person (name) SELECT name FROM new`.execute(
    db,
  );
  assert.deepEqual(written, { insertId: 1n, numAffectedRows: 1n, rows: [] });
  const returning = sql`INSERT INTO person (name) VALUES ('RETURNING'), (${"Bob"})`;
  assert.equal((await returning.execute(db)).numAffectedRows, 2n);
  assert.deepEqual(await rows(sql`DELETE FROM person WHERE id > 1 RETURNING id`), [{ id: 2 }, { id: 3 }]);
  assert.ok((await db.selectFrom("person").selectAll().explain()).length > 0);
  assert.deepEqual(await names(db), ["Ada"]);
});

test("a transaction is committed, or rolled back with the error of its function", async (t) => {
  const { db } = await kysely(t);
  const made = await db.transaction().execute(async (trx) => {
    await insert(trx, "Ada");
    assert.deepEqual(await names(trx), ["Ada"]);
    // Another connection does not see it.
    assert.deepEqual(await names(db), []);
    return "made";
  });
  assert.equal(made, "made");
  const failing = db.transaction().execute(async (trx) => {
    await insert(trx, "Bob");
    await assert.rejects(insert(trx, "Ada"), { code: "SQLITE_CONSTRAINT_UNIQUE" });
    throw new RangeError("not today");
  });
  await assert.rejects(failing, RangeError);
  assert.deepEqual(await names(db), ["Ada"]);
});

test("a commit that fails leaves nothing behind", async (t) => {
  const { db } = await kysely(t);
  await sql`CREATE TABLE pet (owner REFERENCES person DEFERRABLE INITIALLY DEFERRED)`.execute(db);
  const failing = db.transaction().execute((trx) => sql`INSERT INTO pet VALUES (7)`.execute(trx));
  await assert.rejects(failing, { code: "SQLITE_CONSTRAINT_FOREIGNKEY" });
  assert.deepEqual((await sql`SELECT * FROM pet`.execute(db)).rows, []);
  await insert(db, "Ada");
});

test("a write on the outer instance in the function of a transaction is refused at once", async (t) => {
  const { db } = await kysely(t);
  await db.transaction().execute(async (trx) => {
    await insert(trx, "Ada");
    await assert.rejects(insert(db, "Bob"), { kind: "misuse", hint: /transaction/ });
    await Promise.all([0, 1].map(() => assert.rejects(insert(db, "Bob"), { kind: "misuse" })));
  });
  await insert(db, "Bob");
  const outside = db.transaction().execute((trx) => insert(trx, "Eve"));
  await Promise.all([outside, insert(db, "Tim")]);
  assert.deepEqual((await names(db)).sort(), ["Ada", "Bob", "Eve", "Tim"]);
});

test("savepoints are kept, undone, and may be used again", async (t) => {
  const { db } = await kysely(t);
  const trx = await db.startTransaction().execute();
  await insert(trx, "kept");
  const one = await trx.savepoint("one").execute();
  await insert(one, "undone");
  const two = await one.savepoint("two").execute();
  await insert(two, "undone too");
  const back = await two.rollbackToSavepoint("one").execute();
  assert.deepEqual(await names(back), ["kept"]);
  await insert(back, "after");
  await back.rollbackToSavepoint("one").execute();
  await insert(back, "at last");
  const released = await back.releaseSavepoint("one").execute();
  const three = await released.savepoint("three").execute();
  await insert(three, "in an open savepoint");
  await three.commit().execute();
  assert.deepEqual(await names(db), ["kept", "at last", "in an open savepoint"]);

  const undone = await db.startTransaction().execute();
  await insert(await undone.savepoint("one").execute(), "never");
  await undone.rollback().execute();
  assert.equal((await names(db)).length, 3);
  await insert(db, "the writer is free");
});

test("a transaction that is left open is rolled back when its connection is given back", async (t) => {
  // It would otherwise hold the writer for so long.
  const { db } = await kysely(t, { tuning: { transactionIdle: 3_600_000 } });
  await db.connection().execute(async (connection) => {
    const trx = await connection.startTransaction().execute();
    await insert(trx, "Ada");
  });
  assert.deepEqual(await names(db), []);
  await insert(db, "Bob");
});

/** A statement is made after so many microtasks. */
async function after(ticks, make) {
  for (let tick = 0; tick < ticks; tick++) await null;
  return make();
}
const LAST_TICK = 40;

test("a statement that comes while its transaction ends never runs by itself", async (t) => {
  const { db } = await kysely(t);
  const kept = [];
  for (let ticks = 0; ticks < LAST_TICK; ticks++) {
    for (const fails of [true, false]) {
      const name = `${ticks} ${fails}`;
      let late;
      const done = db.transaction().execute(async (trx) => {
        late = after(ticks, () => insert(trx, name)).then(
          () => kept.push(name),
          () => {},
        );
        if (fails) throw new RangeError("not today");
      });
      await done.catch((error) => assert.ok(error instanceof RangeError));
      await late;
      // What it was told was kept is, unless the transaction was undone after it.
      assert.deepEqual(
        (await names(db)).filter((one) => one === name),
        kept.includes(name) && !fails ? [name] : [],
        name,
      );
    }
  }
});

test("neither does one behind others that run, nor a stream, nor one of a controlled transaction", async (t) => {
  const { db } = await kysely(t);
  for (const end of ["commit", "rollback"]) {
    const trx = await db.startTransaction().execute();
    const over = trx[end]().execute();
    const late = [insert(trx, "late"), insert(trx, "later"), trx.selectFrom("person").selectAll().stream().next()];
    await over;
    for (const one of late) await assert.rejects(one);
  }
  const failing = db.transaction().execute(async (trx) => {
    for (let at = 0; at < 20; at++) insert(trx, `queued ${at}`).catch(() => {});
    throw new RangeError("not today");
  });
  await assert.rejects(failing, RangeError);
  await insert(db, "next");
  assert.deepEqual(await names(db), ["next"]);
});

test("after a commit that failed a controlled transaction runs nothing, until it is rolled back", async (t) => {
  const { db } = await kysely(t);
  await sql`CREATE TABLE pet (owner REFERENCES person DEFERRABLE INITIALLY DEFERRED)`.execute(db);
  const trx = await db.startTransaction().execute();
  await sql`INSERT INTO pet VALUES (7)`.execute(trx);
  await assert.rejects(trx.commit().execute(), { code: "SQLITE_CONSTRAINT_FOREIGNKEY" });
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(insert(trx, "late"), { kind: "misuse", message: /the transaction is over/ });
  await trx.rollback().execute();
  assert.deepEqual(await names(db), []);
});

test("a connection goes on after its transactions, and a statement of theirs that comes late does not", async (t) => {
  const { db } = await kysely(t);
  let leaked;
  await db.connection().execute(async (connection) => {
    leaked = connection;
    for (let ticks = 0; ticks < LAST_TICK; ticks++) {
      let late;
      const failing = connection.transaction().execute(async (trx) => {
        const slow = sql`${sql.raw(numbers(1000))} SELECT count(*) FROM c`.execute(trx);
        late = Promise.allSettled([slow, insert(trx, "queued"), after(ticks, () => insert(trx, "late"))]);
        throw new RangeError("not today");
      });
      await assert.rejects(failing, RangeError);
      await insert(connection, `kept ${ticks}`);
      await late;
    }
  });
  const late = { kind: "misuse", message: /the connection was given back/ };
  await assert.rejects(insert(leaked, "late"), late);
  await db.transaction().execute(async (trx) => {
    await assert.rejects(insert(leaked, "late"), late);
    await insert(trx, "in a transaction");
  });
  assert.deepEqual(
    (await names(db)).filter((name) => !name.startsWith("kept")),
    ["in a transaction"],
  );
  assert.equal((await names(db)).length, LAST_TICK + 1);
});

test("a read-only transaction sees one point in time and refuses writes", async (t) => {
  const { db } = await kysely(t);
  await insert(db, "Ada");
  const read = db.transaction().setAccessMode("read only");
  await read.execute(async (trx) => {
    assert.deepEqual(await names(trx), ["Ada"]);
    await insert(db, "Bob");
    assert.deepEqual(await names(trx), ["Ada"]);
    await assert.rejects(insert(trx, "Eve"), { kind: "misuse", message: /only reads/ });
  });
  assert.deepEqual(await names(db), ["Ada", "Bob"]);
});

test("a stream yields all rows, and one that is left frees its connection", async (t) => {
  const { db } = await kysely(t, { readers: 1 });
  await sql`${sql.raw(numbers(5000))} INSERT INTO person (name) SELECT 'name ' || x FROM c`.execute(db);
  const ids = [];
  for await (const { id } of db.selectFrom("person").select("id").orderBy("id").stream()) {
    ids.push(id);
  }
  assert.deepEqual(
    ids,
    Array.from({ length: 5000 }, (_, at) => at + 1),
  );
  for (let i = 0; i < 20; i++) {
    for await (const row of db.selectFrom("person").selectAll().stream(10)) {
      assert.ok(row.id);
      break;
    }
  }
  await db.transaction().execute(async (trx) => {
    await insert(trx, "last");
    let count = 0;
    for await (const _ of trx.selectFrom("person").selectAll().stream()) count++;
    assert.equal(count, 5001);
  });
  await assert.rejects(db.selectFrom("absent").selectAll().stream().next(), { kind: "sql" });
});

test("tables and their columns are described", async (t) => {
  const { db } = await kysely(t);
  await db.schema
    .createView("grown")
    .as(db.selectFrom("person").select("id").where("age", ">", 17))
    .execute();
  const tables = await db.introspection.getTables();
  assert.deepEqual(
    tables.map(({ name, isView }) => [name, isView]),
    [
      ["grown", true],
      ["person", false],
    ],
  );
  const [id, name] = tables[1].columns;
  assert.deepEqual([id.name, id.dataType, id.isAutoIncrementing], ["id", "INTEGER", true]);
  assert.deepEqual([name.isNullable, name.hasDefaultValue], [false, false]);
});

test("an error has what the engine says, and the stack of the caller", async (t) => {
  const { db } = await kysely(t);
  await insert(db, "Ada");
  // Kysely has about ten functions between the two.
  const { stackTraceLimit } = Error;
  t.after(() => (Error.stackTraceLimit = stackTraceLimit));
  Error.stackTraceLimit = 50;
  async function theCaller() {
    await insert(db, "Ada");
  }
  await assert.rejects(theCaller(), (error) => {
    assert.deepEqual([error.name, error.code], ["FlatwaterError", "SQLITE_CONSTRAINT_UNIQUE"]);
    assert.ok(error.stack.includes("theCaller"), error.stack);
    return true;
  });
  await assert.rejects(db.selectFrom("persn").selectAll().execute(), { kind: "sql", hint: /person/ });
  await assert.rejects(sql`SELECT ${undefined}`.execute(db), { kind: "misuse", message: /parameter 1: undefined/ });
  await assert.rejects(sql`BEGIN`.execute(db), { kind: "misuse" });
});

test("a signal that is aborted interrupts the query, and everything else goes on", async (t) => {
  t.mock.method(console, "error", () => {});
  const { db, database } = await kysely(t, { readers: 1 });
  const endless = sql`${sql.raw(ENDLESS)}`;
  const abort = new AbortController();
  const calls = [0, 1].map(() => assert.rejects(endless.execute(db, { signal: abort.signal }), { name: "AbortError" }));
  // There is one reader: one of them runs, and the other waits.
  await until(() => database.stats().readsWaiting > 0);
  abort.abort();
  await Promise.all(calls);
  await until(() => database.stats().readsWaiting === 0);
  await assert.rejects(endless.execute(db, { signal: AbortSignal.abort() }), { name: "AbortError" });
  await db.transaction().execute(async (trx) => {
    const abort = new AbortController();
    const call = assert.rejects(endless.execute(trx, { signal: abort.signal }), { name: "AbortError" });
    setImmediate(() => abort.abort());
    await call;
    await insert(trx, "Ada");
  });
  assert.deepEqual(await names(db), ["Ada"]);
});

test("50 queries and 50 transactions at once all succeed, and timers run meanwhile", async (t) => {
  const { db } = await kysely(t);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 1);
  let ticksBeside = 0;
  const slow = sql`${sql.raw(numbers(1_000_000))} SELECT count(*) AS count FROM c`.execute(db);
  const at = Array.from({ length: 50 }, (_, at) => at);
  await Promise.all([
    slow.then(() => (ticksBeside = ticks)),
    ...at.map((at) => insert(db, `query ${at}`)),
    ...at.map(() => db.selectFrom("person").selectAll().execute()),
    ...at.map((at) =>
      db.transaction().execute(async (trx) => {
        await insert(trx, `first ${at}`);
        await insert(trx, `second ${at}`);
      }),
    ),
  ]);
  clearInterval(timer);
  assert.deepEqual((await slow).rows, [{ count: 1_000_000 }]);
  assert.equal((await names(db)).length, 150);
  assert.ok(ticksBeside > 0);
});

test("the module for require is that for import, and a function opens the database when it is used", async (t) => {
  const require = createRequire(import.meta.url);
  assert.equal(require("../../dist/kysely.js").FlatwaterDialect, FlatwaterDialect);
  let database;
  const opens = async () => (database = await open(`${folder(t)}/late.db`));
  const db = new Kysely({ dialect: new FlatwaterDialect({ database: opens }) });
  assert.equal(database, undefined);
  await sql`SELECT 1`.execute(db);
  await db.destroy();
  await assert.rejects(database.query("SELECT 1"), { kind: "closed" });
});
