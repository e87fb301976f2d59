// Kysely's migrations on the dialect of this package: one program at a time applies them, all or none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { open } from "../dist/index.mjs";
import { FlatwaterDialect } from "../dist/kysely.mjs";
import { insert, kysely } from "./kysely/support.mjs";

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
