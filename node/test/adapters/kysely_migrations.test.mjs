// Kysely's migrations on the dialect of this package: one program at a time applies them, all or none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { open } from "../../dist/index.mjs";
import { FlatwaterDialect } from "../../dist/kysely.mjs";
import { insert, kysely, names } from "./kysely/support.mjs";
import { folder } from "../support.mjs";

const steps = {
  "001_pet": { up: (db) => db.schema.createTable("pet").addColumn("name", "text").execute() },
  "002_rows": {
    up: (db) => db.insertInto("pet").values({ name: "Rex" }).execute(),
    down: (db) => db.deleteFrom("pet").execute(),
  },
};
const migrator = (db, migrations = steps, more = {}) =>
  new Migrator({ db, provider: { getMigrations: async () => migrations }, ...more });

test("migrations are applied once, however many apply them", async (t) => {
  const { db, database } = await kysely(t);
  const others = await Promise.all([0, 1, 2].map(() => open(database.path)));
  t.after(() => Promise.all(others.map((other) => other.close())));
  const all = [db, ...others.map((database) => new Kysely({ dialect: new FlatwaterDialect({ database }) }))];
  for (const more of [{}, { disableTransactions: true }]) {
    const results = await Promise.all(all.map((db) => migrator(db, steps, more).migrateToLatest()));
    assert.deepEqual(
      results.map(({ error }) => error),
      [undefined, undefined, undefined, undefined],
    );
    assert.equal(results.flatMap(({ results }) => results).length, 2);
    assert.equal(await database.queryValue("SELECT count(*) FROM pet"), 1);
    assert.equal((await migrator(db).migrateDown()).results.length, 1);
    assert.equal(await database.queryValue("SELECT count(*) FROM pet"), 0);
    await database.executeScript("DROP TABLE pet; DELETE FROM kysely_migration");
  }
});

test("a migration that fails undoes those before it, unless transactions are off", async (t) => {
  const { db, database } = await kysely(t);
  const failing = { ...steps, "003_fails": { up: (db) => db.insertInto("absent").values({ a: 1 }).execute() } };
  const { error, results } = await migrator(db, failing).migrateToLatest();
  assert.equal(error.kind, "sql");
  assert.deepEqual(
    results.map(({ status }) => status),
    ["Success", "Success", "Error"],
  );
  assert.equal(await database.queryValue("SELECT count(*) FROM sqlite_schema WHERE name = 'pet'"), 0);
  await migrator(db, failing, { disableTransactions: true }).migrateToLatest();
  assert.equal(await database.queryValue("SELECT name FROM pet"), "Rex");
  // The lock is given back.
  await insert(db, "Ada");
  const inTransaction = await db.transaction().execute((trx) => migrator(trx).migrateToLatest());
  assert.deepEqual(inTransaction, { results: [] });
});

/** As SQLite's manual says to do it. */
const rebuild = async (db) => {
  await sql`PRAGMA foreign_keys = OFF`.execute(db);
  await db.schema
    .createTable("new_person")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("name", "text")
    .execute();
  await sql`INSERT INTO new_person SELECT id, name FROM person`.execute(db);
  await db.schema.dropTable("person").execute();
  await db.schema.alterTable("new_person").renameTo("person").execute();
};
const CHILDREN = "CREATE TABLE pet (owner REFERENCES person ON DELETE CASCADE); INSERT INTO pet VALUES (1)";

test("a table that others refer to is rebuilt, and they keep their rows", async (t) => {
  for (const path of [undefined, ":memory:"]) {
    for (const more of [{}, { disableTransactions: true }]) {
      const { db, database } = await kysely(t, {}, path);
      await insert(db, "Ada");
      await database.executeScript(CHILDREN);
      const { error } = await migrator(db, { "001_rebuild": { up: rebuild } }, more).migrateToLatest();
      assert.equal(error, undefined);
      assert.deepEqual(await database.query("SELECT owner, name FROM pet JOIN person ON id = owner"), [
        { owner: 1, name: "Ada" },
      ]);
      // They are enforced again.
      await assert.rejects(database.execute("INSERT INTO pet VALUES (7)"), { code: "SQLITE_CONSTRAINT_FOREIGNKEY" });
      await assert.rejects(
        db.transaction().execute((trx) => sql`INSERT INTO pet VALUES (7)`.execute(trx)),
        { code: "SQLITE_CONSTRAINT_FOREIGNKEY" },
      );
    }
  }
});

test("migrations that leave a row without its parent are not applied", async (t) => {
  for (const path of [undefined, ":memory:"]) {
    const { db, database } = await kysely(t, {}, path);
    await insert(db, "Ada");
    await database.executeScript(CHILDREN);
    const dangles = { ...one, "002_dangles": { up: (db) => db.deleteFrom("person").execute() } };
    const { error } = await migrator(db, dangles).migrateToLatest();
    assert.equal(error.kind, "constraint");
    assert.match(error.message, /table pet, rowid 1, parent person/);
    assert.equal(await database.queryValue("SELECT count(*) FROM person"), 1);
    assert.equal(await database.queryValue("SELECT count(*) FROM kysely_migration"), 0);
  }
});

test("a row that had no parent before keeps no migration from being applied", async (t) => {
  const path = `${folder(t)}/test.db`;
  const { db, database } = await kysely(t, { foreignKeys: false }, path);
  await insert(db, "Ada");
  await database.executeScript(`${CHILDREN}; INSERT INTO pet VALUES (7)`);
  await db.destroy();
  const strict = await open(path);
  t.after(() => strict.close());
  assert.equal(await strict.queryValue("PRAGMA foreign_keys"), 1);
  const on = new Kysely({ dialect: new FlatwaterDialect({ database: strict }) });
  assert.equal((await migrator(on, { "001_rebuild": { up: rebuild } }).migrateToLatest()).error, undefined);
  const { error } = await migrator(on, {
    "001_rebuild": { up: rebuild },
    "002_more": { up: dangle },
  }).migrateToLatest();
  assert.match(error.message, /add 1 foreign key violations; the first: table pet, rowid 3, parent person/);
});
const dangle = (db) => sql`INSERT INTO pet VALUES (8)`.execute(db);
const one = { "001_toy": { up: (db) => db.schema.createTable("toy").addColumn("name", "text").execute() } };

test("in a migration the outer instance cannot write, and transactions of a migration are savepoints", async (t) => {
  const { db } = await kysely(t);
  const savepoints = async (connection) => {
    await assert.rejects(insert(db, "outside"), { kind: "misuse" });
    if (!connection.isTransaction) {
      await connection.transaction().execute((trx) => insert(trx, "kept"));
      const failing = connection.transaction().execute(async (trx) => {
        await insert(trx, "undone");
        throw new RangeError("not today");
      });
      await assert.rejects(failing, RangeError);
    }
  };
  for (const [name, more] of [
    ["001_one", {}],
    ["002_two", { disableTransactions: true }],
  ]) {
    const all = { "001_one": { up: savepoints }, [name]: { up: savepoints } };
    assert.equal((await migrator(db, all, more).migrateToLatest()).error, undefined);
  }
  assert.deepEqual(await names(db), ["kept"]);
});

test("migrations in a transaction of the program have its foreign keys", async (t) => {
  const { db, database } = await kysely(t);
  await insert(db, "Ada");
  await database.executeScript(CHILDREN);
  await db.transaction().execute(async (trx) => {
    await insert(trx, "Bob");
    const { error } = await migrator(trx, one).migrateToLatest();
    assert.equal(error, undefined);
    assert.deepEqual((await sql`PRAGMA foreign_keys`.execute(trx)).rows, [{ foreign_keys: 1 }]);
  });
  assert.deepEqual(await names(db), ["Ada", "Bob"]);
});

test("migrations that are over run nothing more by themselves", async (t) => {
  const { db, database } = await kysely(t);
  const told = [];
  const up = async (on) => {
    for (const text of ["COMMIT", "/* a */ end", "ROLLBACK", "BEGIN"]) {
      await assert.rejects(sql.raw(text).execute(on), { kind: "misuse", message: /one transaction/ });
    }
    await assert.rejects(sql`INSERT OR ROLLBACK INTO person (id, name) VALUES (NULL, NULL)`.execute(on));
    await insert(on, "alone").catch((error) => told.push(error.message));
    await insert(on, "alone too").catch((error) => told.push(error.message));
  };
  for (const options of [{}, { disableTransactions: true }]) {
    const { error } = await migrator(db, { "001_over": { up } }, options).migrateToLatest();
    assert.ok(error !== undefined);
    assert.deepEqual(await names(db), []);
  }
  assert.equal(told.length, 4);
  assert.match(told[1], /the transaction is over: .*NOT NULL/);
  assert.equal(await database.queryValue("PRAGMA foreign_keys"), 1);
});

test("migrations that the idle limit has ended are not applied", async (t) => {
  const { db, database } = await kysely(t, { tuning: { transactionIdle: 1 } });
  const up = async (on) => {
    await insert(on, "never").catch(() => {});
    // It waits until the transaction is rolled back.
    await other.execute("CREATE TABLE other (a)");
    await insert(on, "alone").catch(() => {});
    await insert(on, "alone too");
  };
  const other = await open(database.path, { tuning: { transactionIdle: 1 } });
  t.after(() => other.close());
  const { error } = await migrator(db, { "001_idle": { up } }).migrateToLatest();
  assert.ok(error !== undefined);
  assert.deepEqual(await names(db), []);
});
