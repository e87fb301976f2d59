// Prisma's schema engine on the driver adapter.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bindMigrationAwareSqlAdapterFactory } from "@prisma/driver-adapter-utils";
import { open } from "../../dist/index.mjs";
import { PrismaFlatwater } from "../../dist/prisma.mjs";
import { folder } from "../../test/support.mjs";

// It has timers of a minute, for which no process is to wait.
const { setTimeout } = globalThis;
globalThis.setTimeout = (...given) => setTimeout(...given).unref();

// What the package exports is for bundlers.
const files = new URL("node_modules/@prisma/schema-engine-wasm/", import.meta.url);
const glue = await import(new URL("schema_engine_bg.js", files));
const bytes = readFileSync(new URL("schema_engine_bg.wasm", files));
const { instance } = await WebAssembly.instantiate(bytes, { "./schema_engine_bg.js": glue });
glue.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start?.();

const schema = (models) => `datasource db {\n provider = "sqlite"\n}\n${models}`;
const PETS = `model Pet {\n name String @id\n owner User @relation(fields: [ownerId], references: [id], onDelete: Cascade)\n ownerId Int\n}`;
const FIRST = schema(`model User {\n id Int @id @default(autoincrement())\n pets Pet[]\n}\n${PETS}`);
/** `User` is rebuilt. */
const SECOND = schema(
  `model User {\n id Int @id @default(autoincrement())\n name String @default("Ada")\n pets Pet[]\n}\n${PETS}`,
);
const PETS_OF_USERS = "SELECT Pet.name AS pet, User.name FROM Pet JOIN User ON id = ownerId";
const filters = { externalTables: [], externalEnums: [] };

/** The engine on a file, with the migrations that were written. */
async function engine(t) {
  const path = join(folder(t), "test.db");
  const migrations = [];
  const factory = new PrismaFlatwater({ url: `file:${path}` });
  const list = () => ({
    baseDir: "/",
    lockfile: { path: "migration_lock.toml", content: 'provider = "sqlite"\n' },
    shadowDbInitScript: "",
    migrationDirectories: migrations.map(([path, value]) => ({
      path,
      migrationFile: { path: "migration.sql", content: { tag: "ok", value } },
    })),
  });
  /** A process has its own engine. */
  const on = async (text, call) => {
    const bound = bindMigrationAwareSqlAdapterFactory(factory);
    const engine = await glue.SchemaEngine.new({ datamodels: [["schema.prisma", text]] }, () => {}, bound);
    return call(engine).finally(() => engine.free());
  };
  const container = (text) => ({ files: [{ path: "schema.prisma", content: text }] });
  return {
    path,
    migrations,
    /** What `prisma migrate diff` writes. */
    async write(from, to) {
      const target = (text) => (text === undefined ? { tag: "empty" } : { tag: "schemaDatamodel", ...container(text) });
      const input = { from: target(from), to: target(to), script: true, exitCode: null, filters };
      const { stdout } = await on(to, (engine) => engine.diff(input));
      migrations.push([`2026010100000${migrations.length}_more`, stdout]);
      return stdout;
    },
    apply: (text) => on(text, (engine) => engine.applyMigrations({ migrationsList: list(), filters })),
    push: (text) => on(text, (engine) => engine.schemaPush({ force: true, schema: container(text), filters })),
    reset: (text) => on(text, (engine) => engine.reset({ filter: filters })),
  };
}

/** Calls `use` with the database. */
async function look(path, use) {
  const database = await open(path);
  return use(database).finally(() => database.close());
}
const tables = (path) =>
  look(path, (db) => db.queryValues("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1"));

test("migrations are applied once, and a table that is rebuilt keeps what refers to it", async (t) => {
  const { path, write, apply, migrations } = await engine(t);
  await write(undefined, FIRST);
  assert.deepEqual((await apply(FIRST)).appliedMigrationNames, [migrations[0][0]]);
  await look(path, (db) => db.executeScript("INSERT INTO User VALUES (1); INSERT INTO Pet VALUES ('Rex', 1)"));
  assert.match(await write(FIRST, SECOND), /PRAGMA foreign_keys=OFF/);
  assert.deepEqual((await apply(SECOND)).appliedMigrationNames, [migrations[1][0]]);
  assert.deepEqual((await apply(SECOND)).appliedMigrationNames, []);
  assert.deepEqual(await look(path, (db) => db.query(PETS_OF_USERS)), [{ pet: "Rex", name: "Ada" }]);
});

test("a migration that fails is not applied at all", async (t) => {
  const { path, apply, migrations, write } = await engine(t);
  await write(undefined, FIRST);
  migrations.push(["20260102000000_fails", "CREATE TABLE half (a);\nCREATE TABLE half (a);"]);
  await assert.rejects(apply(FIRST), /half already exists/);
  assert.ok(!(await tables(path)).includes("half"));
});

test("a schema is pushed, and its rows are reset", async (t) => {
  const { path, push, reset } = await engine(t);
  await push(FIRST);
  await look(path, (db) => db.executeScript("INSERT INTO User VALUES (1); INSERT INTO Pet VALUES ('Rex', 1)"));
  await push(SECOND);
  assert.deepEqual(await look(path, (db) => db.query(PETS_OF_USERS)), [{ pet: "Rex", name: "Ada" }]);
  await reset(SECOND);
  assert.equal(await look(path, (db) => db.queryValue("SELECT (SELECT count(*) FROM Pet) + count(*) FROM User")), 0);
});
