// Drizzle ORM 1.0 on this package, in a folder where that version is installed.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { workspace } from "../../suites/workspace.mjs";
import { facts } from "./drizzle/facts.mjs";
import { folder } from "../support.mjs";

const place = fileURLToPath(new URL("../../node_modules/.drizzle-v1", import.meta.url));
workspace(place, { "drizzle-orm": "node_modules/drizzle-orm-v1" });
const own = join(place, "node_modules/flatwater/dist");
const load = (path) => import(pathToFileURL(path));
const drizzle = (name) => load(join(place, "node_modules/drizzle-orm", name));
const flatwater = await load(join(own, "index.mjs"));
const adapter = await load(join(own, "drizzle-v1.mjs"));
const orm = await drizzle("index.js");
const core = await drizzle("sqlite-core/index.js");

/** A folder for each migration. */
function write(folder, texts) {
  for (const [name, text] of texts) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "migration.sql"), text);
  }
}

facts({ flatwater, adapter, orm, core, write });

test("related rows are queried by the relations", async (t) => {
  const { integer, sqliteTable, text } = core;
  const owners = sqliteTable("owners", { id: integer().primaryKey(), name: text().notNull() });
  const pets = sqliteTable("pets", { name: text().notNull(), owner: integer() });
  const relations = orm.defineRelations({ owners, pets }, (r) => ({
    owners: { pets: r.many.pets() },
    pets: { of: r.one.owners({ from: r.pets.owner, to: r.owners.id }) },
  }));
  const client = await flatwater.open(join(folder(t), "test.db"));
  t.after(() => client.close());
  await client.executeScript(
    "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE pets (name, owner)",
  );
  const db = adapter.drizzle(client, { relations });
  await db.insert(owners).values([{ name: "Ada" }, { name: "Bob" }]);
  await db.insert(pets).values({ name: "Rex", owner: 1 });
  const found = [
    { id: 1, name: "Ada", pets: [{ name: "Rex" }] },
    { id: 2, name: "Bob", pets: [] },
  ];
  const query = { with: { pets: { columns: { name: true } } } };
  assert.deepEqual(await db.query.owners.findMany(query), found);
  await db.transaction(async (tx) => assert.deepEqual(await tx.query.owners.findMany(query), found));
  assert.deepEqual(await db.batch([db.query.pets.findFirst({ with: { of: true } })]), [
    { name: "Rex", owner: 1, of: { id: 1, name: "Ada" } },
  ]);
});

test("the history of an older version is taken over", async (t) => {
  const client = await flatwater.open(join(folder(t), "test.db"));
  t.after(() => client.close());
  const migrationsFolder = folder(t);
  write(migrationsFolder, [
    ["20260101000000_one", "CREATE TABLE one (a)"],
    ["20260102000000_two", "CREATE TABLE two (a)"],
  ]);
  await client.executeScript(`CREATE TABLE one (a);
    CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
    INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('of one', ${Date.UTC(2026, 0, 1)})`);
  const db = adapter.drizzle(client);
  await adapter.migrate(db, { migrationsFolder });
  assert.deepEqual(await client.queryValues("SELECT name FROM __drizzle_migrations ORDER BY rowid"), [
    "20260101000000_one",
    "20260102000000_two",
  ]);
});

test("the module for require has Drizzle's classes for require", async (t) => {
  const require = createRequire(join(own, "/"));
  const db = require("./drizzle-v1.js").drizzle(await flatwater.open(join(folder(t), "test.db")));
  t.after(() => db.$client.close());
  assert.deepEqual(await db.all("SELECT 1 AS a"), [{ a: 1 }]);
});
