// Runs Drizzle's tests for libsql with this package in the place of libsql: where they are is the current folder.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const { FLATWATER_SUITE_ENTRY: entry, FLATWATER_SUITE_FILES: files, FLATWATER_SUITE_WITHOUT: without } = process.env;

const ABSENT = /^(@miniflare\/|@sqlitecloud\/|@tursodatabase\/|better-sqlite3$|sql\.js$|node:sqlite$|dotenv\/).*/;
const DRIVERS = /^drizzle-orm\/(better-sqlite3|d1|libsql\/\w+|node-sqlite|sql-js|sqlite-cloud|sqlite-proxy|turso.*)$/;

export default defineConfig({
  root: process.cwd(),
  resolve: {
    alias: [
      { find: /^drizzle-orm\/libsql(\/migrator)?$/, replacement: `flatwater/${entry}` },
      { find: /^@libsql\/client.*/, replacement: here("client.mjs") },
      { find: "async-retry", replacement: here("retry.mjs") },
      { find: ABSENT, replacement: here("absent.mjs") },
      { find: DRIVERS, replacement: here("absent.mjs") },
      { find: /^~\//, replacement: `${process.cwd()}/tests/` },
    ],
  },
  test: {
    include: files.split(","),
    testNamePattern: without && new RegExp(`^(?!.*(${without}))`),
    env: { LIBSQL_URL: "file:unused" },
    fileParallelism: false,
    restoreMocks: true,
    testTimeout: 60_000,
    reporters: ["dot"],
    server: { deps: { inline: [/suites\/drizzle\//] } },
  },
});
