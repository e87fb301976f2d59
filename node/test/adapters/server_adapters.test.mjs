// Kysely and Drizzle on servers, beside a file: all of it on a libSQL server, and on a cluster what needs no transaction.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as orm from "drizzle-orm";
import * as core from "drizzle-orm/sqlite-core";
import { Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { drizzle, migrate } from "../../dist/drizzle.mjs";
import { open } from "../../dist/index.mjs";
import { FlatwaterDialect } from "../../dist/kysely.mjs";
import { cluster, needsSqld, sqld } from "../servers.mjs";
import { database, folder } from "../support.mjs";

const NO_TRANSACTIONS = { kind: "misuse", message: /no interactive transactions/ };

async function onKysely(db) {
  const got = [];
  await db.schema
    .createTable("users")
    .addColumn("id", "integer", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.unique())
    .execute();
  got.push(
    await db
      .insertInto("users")
      .values([{ name: "Ada" }, { name: "Bob" }])
      .executeTakeFirst(),
  );
  got.push(await db.insertInto("users").values({ name: "Eve" }).returningAll().execute());
  got.push(await db.updateTable("users").set({ name: "Ann" }).where("id", "=", 1).executeTakeFirst());
  await assert.rejects(db.insertInto("users").values({ name: "Eve" }).execute(), { kind: "constraint" });
  got.push(await db.selectFrom("users").selectAll().orderBy("id").execute());
  for await (const row of db.selectFrom("users").selectAll().orderBy("id").stream()) {
    got.push(row);
  }
  const [{ columns }] = (await db.introspection.getTables()).filter(({ name }) => name === "users");
  got.push(columns);
  return got;
}

async function inTransactionsOfKysely(db) {
  const count = async (on) =>
    Number(
      (
        await on
          .selectFrom("users")
          .select(sql`count(*)`.as("n"))
          .execute()
      )[0].n,
    );
  const insert = (on, name) => on.insertInto("users").values({ name }).execute();
  const got = [];
  await db.transaction().execute(async (tx) => {
    await insert(tx, "Fay");
    got.push(await count(tx));
  });
  const undone = db.transaction().execute(async (tx) => {
    await insert(tx, "Gus");
    throw new Error("undo");
  });
  await assert.rejects(undone, /undo/);
  const tx = await db.startTransaction().execute();
  const saved = await tx.savepoint("a").execute();
  await insert(saved, "Hal");
  const back = await saved.rollbackToSavepoint("a").execute();
  await insert(back, "Ida");
  await back.releaseSavepoint("a").execute();
  await tx.commit().execute();
  got.push(await db.transaction().setAccessMode("read only").execute(count));
  const up = (on) => on.schema.createTable("made").addColumn("a", "text").execute();
  const provider = { getMigrations: async () => ({ one: { up } }) };
  for (let run = 0; run < 2; run++) {
    const { error, results } = await new Migrator({ db, provider }).migrateToLatest();
    assert.equal(error, undefined);
    got.push(results.map(({ status }) => status));
  }
  return got;
}

function kysely(t, client) {
  const db = new Kysely({ dialect: new FlatwaterDialect({ database: client }) });
  t.after(() => db.destroy());
  return db;
}

const users = core.sqliteTable("people", {
  id: core.integer().primaryKey(),
  name: core.text().notNull().unique(),
  born: core.integer({ mode: "timestamp" }),
});

async function onDrizzle(db, at) {
  mkdirSync(join(at, "meta"), { recursive: true });
  const tag = "0001_people";
  const text = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, born INTEGER)";
  writeFileSync(join(at, `${tag}.sql`), text);
  const entries = [{ idx: 0, version: "6", when: 1, tag, breakpoints: true }];
  writeFileSync(join(at, "meta/_journal.json"), JSON.stringify({ version: "7", dialect: "sqlite", entries }));
  await migrate(db, { migrationsFolder: at });
  await migrate(db, { migrationsFolder: at });
  const got = [await db.insert(users).values({ name: "Ada", born: new Date(0) })];
  got.push(await db.insert(users).values({ name: "Bob" }).returning());
  await assert.rejects(db.insert(users).values({ name: "Bob" }));
  got.push(
    await db.batch([db.insert(users).values({ name: "Eve" }), db.delete(users).where(orm.eq(users.name, "Bob"))]),
  );
  got.push(await db.select().from(users).orderBy(users.id));
  got.push(await db.get(orm.sql`SELECT count(*) AS n FROM people`));
  return got;
}

async function inTransactionsOfDrizzle(db) {
  await db.transaction(async (tx) => {
    await tx.insert(users).values({ name: "Fay" });
    await assert.rejects(
      tx.transaction(async (inner) => {
        await inner.insert(users).values({ name: "Gus" });
        inner.rollback();
      }),
    );
  });
  return db.select().from(users).orderBy(users.id);
}

test("on a libSQL server adapters do what they do on a file", needsSqld, async (t) => {
  const address = await sqld(t);
  const [server, file] = [kysely(t, await open(address)), kysely(t, await database(t))];
  assert.deepEqual(await onKysely(server), await onKysely(file));
  assert.deepEqual(await inTransactionsOfKysely(server), await inTransactionsOfKysely(file));
  const client = await open(address);
  t.after(() => client.close());
  const [there, here] = [drizzle(client), drizzle(await database(t))];
  assert.deepEqual(await onDrizzle(there, folder(t)), await onDrizzle(here, folder(t)));
  assert.deepEqual(await inTransactionsOfDrizzle(there), await inTransactionsOfDrizzle(here));
});

test("on a cluster they do it without transactions, and say so of those", async (t) => {
  const { address } = await cluster(t);
  const [server, file] = [kysely(t, await open(address)), kysely(t, await database(t))];
  assert.deepEqual(await onKysely(server), await onKysely(file));
  await assert.rejects(server.transaction().execute(assert.fail), NO_TRANSACTIONS);
  const client = await open(address);
  t.after(() => client.close());
  const [there, here] = [drizzle(client), drizzle(await database(t))];
  assert.deepEqual(await onDrizzle(there, folder(t)), await onDrizzle(here, folder(t)));
  await assert.rejects(there.transaction(assert.fail), NO_TRANSACTIONS);
});
