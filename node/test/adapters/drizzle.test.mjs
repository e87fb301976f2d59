// Drizzle ORM 0.45 on this package.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import * as orm from "drizzle-orm";
import * as core from "drizzle-orm/sqlite-core";
import * as flatwater from "../../dist/index.mjs";
import * as adapter from "../../dist/drizzle.mjs";
import { facts } from "./drizzle/facts.mjs";
import { database } from "../support.mjs";

/** A text for each migration, and a journal that names them. */
function write(folder, texts) {
  const entries = texts.map(([tag, text], idx) => {
    writeFileSync(join(folder, `${tag}.sql`), text);
    return { idx, version: "6", when: Number(tag.slice(0, 8)), tag, breakpoints: true };
  });
  writeFileSync(join(folder, "meta/_journal.json"), JSON.stringify({ version: "7", dialect: "sqlite", entries }));
}

facts({ flatwater, adapter, orm, core, write });

test("related rows are queried by the schema", async (t) => {
  const { integer, sqliteTable, text } = core;
  const owners = sqliteTable("owners", { id: integer().primaryKey(), name: text().notNull() });
  const pets = sqliteTable("pets", { name: text().notNull(), owner: integer().references(() => owners.id) });
  const ownersRelations = orm.relations(owners, ({ many }) => ({ pets: many(pets) }));
  const petsRelations = orm.relations(pets, ({ one }) => ({
    of: one(owners, { fields: [pets.owner], references: [owners.id] }),
  }));
  const client = await database(t);
  await client.executeScript(
    "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE pets (name, owner)",
  );
  const db = adapter.drizzle(client, { schema: { owners, pets, ownersRelations, petsRelations } });
  await db.insert(owners).values([{ name: "Ada" }, { name: "Bob" }]);
  await db.insert(pets).values({ name: "Rex", owner: 1 });
  const found = [
    { id: 1, name: "Ada", pets: [{ name: "Rex" }] },
    { id: 2, name: "Bob", pets: [] },
  ];
  const query = { with: { pets: { columns: { name: true } } } };
  assert.deepEqual(await db.query.owners.findMany(query), found);
  assert.deepEqual(await db.query.pets.findFirst({ with: { of: true } }), {
    name: "Rex",
    owner: 1,
    of: { id: 1, name: "Ada" },
  });
  await db.transaction(async (tx) => assert.deepEqual(await tx.query.owners.findMany(query), found));
  assert.deepEqual(await db.batch([db.query.owners.findMany(query)]), [found]);
});

test("the module for require has Drizzle's classes for require", async (t) => {
  const require = createRequire(import.meta.url);
  const { drizzle } = require("../../dist/drizzle.js");
  const db = drizzle(await database(t));
  assert.ok(db instanceof require("drizzle-orm/sqlite-core").BaseSQLiteDatabase);
  assert.ok(!(db instanceof core.BaseSQLiteDatabase));
  assert.deepEqual(await db.all("SELECT 1 AS a"), [{ a: 1 }]);
});
