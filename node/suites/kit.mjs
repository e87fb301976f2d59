// The steps of the guide for drizzle-kit: `node kit.mjs`. It runs without a driver of its own.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { workspace } from "./workspace.mjs";

const kit = (name) => `suites/kit/node_modules/${name}`;
const place = fileURLToPath(new URL("target/kit", import.meta.url));
workspace(place, { "drizzle-orm": kit("drizzle-orm"), "drizzle-kit": kit("drizzle-kit") });

const guide = readFileSync(new URL("../../docs/guide/kysely-drizzle-prisma.md", import.meta.url), "utf8");
const [, config] = /^```ts\n\/\/ drizzle.config.ts\n(.*?)^```/ms.exec(guide);
const { rmSync } = await import("node:fs");
for (const name of readdirSync(place)) if (name !== "node_modules") rmSync(join(place, name), { recursive: true });
writeFileSync(join(place, "drizzle.config.ts"), config);

const schema = (users) => `import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
export const users = sqliteTable("users", { id: integer().primaryKey(), ${users} });
export const pets = sqliteTable("pets", { owner: integer().references(() => users.id, { onDelete: "cascade" }) });\n`;
const generate = (users) => {
  writeFileSync(join(place, "schema.ts"), schema(users));
  const cli = join(place, "node_modules/drizzle-kit/bin.cjs");
  execFileSync(process.execPath, [cli, "generate"], { cwd: place, stdio: ["ignore", "pipe", "inherit"] });
};

const require = createRequire(join(place, "/"));
const { open } = require("flatwater");
const { drizzle, migrate } = require("flatwater/drizzle");
const client = await open(join(place, "users.db"));
const db = drizzle(client);
const migrations = { migrationsFolder: join(place, "drizzle") };

generate("name: text()");
await migrate(db, migrations);
await client.executeScript("INSERT INTO users VALUES (1, 'Ada'); INSERT INTO pets VALUES (1)");
// A column that must not be NULL from now on: the table is rebuilt.
generate("name: text().notNull()");
const [, rebuild] = readdirSync(migrations.migrationsFolder).filter((name) => name.endsWith(".sql"));
assert.match(readFileSync(join(migrations.migrationsFolder, rebuild), "utf8"), /DROP TABLE `users`/);
await migrate(db, migrations);
await migrate(db, migrations);
assert.deepEqual(await client.query("SELECT name FROM pets JOIN users ON id = owner"), [{ name: "Ada" }]);
await assert.rejects(client.execute("INSERT INTO users VALUES (2, NULL)"), { code: "SQLITE_CONSTRAINT_NOTNULL" });
await client.close();
