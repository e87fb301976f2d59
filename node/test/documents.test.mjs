// The code of the documents runs: in the READMEs each block is a program, in the guide the blocks of a page are one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ENDLESS, folder, run } from "./support.mjs";

const root = new URL("../../", import.meta.url);
const guide = readdirSync(new URL("docs/guide/", root));

/** Pages about other languages and their libraries, and about what Node does not have. */
const WITHOUT_NODE = [
  ...[
    "coming-from-sqlx.md",
    "coming-from-tokio-rusqlite.md",
    "compile-errors.md",
    "from-aiosqlite.md",
    "from-sqlite3.md",
    "checked-sql.md",
    "rust-libraries.md",
  ],
  ...["libsql.md", "rqlite.md", "scaling.md"],
];

/** Pages whose code needs the package `@flatwater/sqlcipher`: `make test-node-sqlcipher` runs it. */
const ENCRYPTED = new Set(["encryption.md"]);

const USERS = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE);";
const ADA_AND_EVE = `${USERS} INSERT INTO users (name) VALUES ('Ada'), ('Eve');`;
const NOTES = "CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, text TEXT, stars INTEGER);";

/** The tables of the database `db` that the code of a page is given, where it opens none. */
const TABLES = {
  "blobs.md": "CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB);",
  "calls.md": `${NOTES} INSERT INTO notes (text) VALUES ('buy tea');`,
  "deadlines.md": ADA_AND_EVE,
  "errors.md": USERS,
  "json.md": `${USERS} INSERT INTO users VALUES (1, 'Bob'), (9223372036854775807, 'Ada');
    CREATE TABLE articles (id INTEGER PRIMARY KEY, author, title, words, tags);
    INSERT INTO articles VALUES (1, 1, 'Tea', 512, '["tea","home"]'), (4, 1, 'More tea', NULL, NULL);`,
  "live.md": `CREATE TABLE todos (id INTEGER PRIMARY KEY, list INTEGER, title TEXT, done INTEGER NOT NULL DEFAULT 0);
    INSERT INTO todos (list, title) VALUES (1, 'buy tea');`,
  "maintenance.md": ADA_AND_EVE,
  "reading.md": `${NOTES} INSERT INTO notes (title) VALUES ('buy tea'), ('rest'); CREATE TABLE events (name, at);`,
  "streams.md": `${NOTES} INSERT INTO notes (text) VALUES ('buy tea'), ('rest');`,
  "transactions.md": `CREATE TABLE accounts (id INTEGER PRIMARY KEY, cents INTEGER NOT NULL);
    INSERT INTO accounts VALUES (1, 100), (2, 100); CREATE TABLE lines (text UNIQUE); CREATE TABLE totals (lines);`,
  "tuning.md": ADA_AND_EVE,
  "writing.md": `CREATE TABLE items (id INTEGER PRIMARY KEY, stock INTEGER); INSERT INTO items VALUES (1, 2), (2, 9);
    CREATE TABLE visits (page TEXT PRIMARY KEY, count INTEGER); CREATE TABLE lines (number, text);
    CREATE TABLE tags (id INTEGER PRIMARY KEY, name);
    CREATE TABLE orders (id INTEGER PRIMARY KEY, item, count); CREATE TABLE log (text);`,
};

/** The files that the code of a page is given. */
const FILES = {
  "kysely-drizzle-prisma.md": {
    "prisma/migrations/20260101000000_init/migration.sql": `CREATE TABLE "Owner" ("id" INTEGER NOT NULL PRIMARY KEY);
      CREATE TABLE "Pet" ("owner" INTEGER REFERENCES "Owner" ON DELETE CASCADE); INSERT INTO "Owner" VALUES (1); INSERT INTO "Pet" VALUES (1);`,
    "prisma/migrations/20260102000000_more/migration.sql": `PRAGMA defer_foreign_keys=ON;
      PRAGMA foreign_keys=OFF; CREATE TABLE "new_Owner" ("id" BIGINT NOT NULL PRIMARY KEY); INSERT INTO "new_Owner" SELECT "id" FROM "Owner";
      DROP TABLE "Owner"; ALTER TABLE "new_Owner" RENAME TO "Owner"; PRAGMA foreign_keys=ON; PRAGMA defer_foreign_keys=OFF;
      CREATE TABLE "checked" (n CHECK (n = 1)); INSERT INTO "checked" SELECT count(*) FROM "Pet";`,
    "prisma/migrations/migration_lock.toml": 'provider = "sqlite"',
  },
};

function blocks(page) {
  const text = readFileSync(new URL(page, root), "utf8");
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code);
}

async function runs(t, code, before = "", files = {}) {
  // The names of the package are there already, and not every Node has `await using`.
  const source = code.replace(/^import .* from "flatwater";\n/gm, "").replaceAll("await using ", "const ");
  const assertions = 'import assert from "node:assert/strict";';
  const place = folder(t);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(place, dirname(name)), { recursive: true });
    writeFileSync(join(place, name), text);
  }
  const program = `${assertions}\nprocess.chdir(${JSON.stringify(place)});\n${before}\n${source}`;
  const { code: ended, errors, output } = await run(program);
  assert.equal(ended, 0, errors + output);
}

for (const page of ["README.md", "node/README.md"]) {
  const all = blocks(page);
  for (const [at, code] of all.entries()) {
    test(`${page}, block ${at + 1} of ${all.length}`, async (t) => {
      await runs(t, code.includes("await db.close()") ? code : `${code}\nawait db.close();`);
    });
  }
}

for (const page of guide) {
  const all = blocks(`docs/guide/${page}`);
  if (all.length > 0 && !ENCRYPTED.has(page)) {
    test(`docs/guide/${page}, ${all.length} blocks`, async (t) => {
      const db = `var db = await open("given.db");\nawait db.executeScript(${JSON.stringify(TABLES[page])});`;
      const before = `const ENDLESS = ${JSON.stringify(ENDLESS)};\n${page in TABLES ? db : ""}`;
      // Names that a page uses again are made again.
      const code = all.join("\n").replace(/^(const|let) /gm, "var ");
      await runs(t, page in TABLES ? `${code}\nawait db.close();` : code, before, FILES[page]);
    });
  }
}

test("every page of the guide with Rust has JavaScript, unless it is about something else", () => {
  const without = guide.filter((page) => {
    const text = readFileSync(new URL(`docs/guide/${page}`, root), "utf8");
    return text.includes("```rust") && blocks(`docs/guide/${page}`).length === 0;
  });
  assert.deepEqual(without.sort(), WITHOUT_NODE.filter((page) => without.includes(page)).sort());
  assert.ok(WITHOUT_NODE.every((page) => guide.includes(page)));
});
