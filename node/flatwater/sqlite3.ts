/**
 * The surface of node-sqlite3: `require("flatwater/sqlite3")` in the place of `require("sqlite3")`.
 *
 * Owns: what the module exports. Leaves out: what each does (`sqlite3/`).
 */

import { resolve } from "node:path";
import { native } from "./native/addon.js";
import { Backup } from "./sqlite3/backup.js";
import { Database, type Rest } from "./sqlite3/database.js";
import type { Cached, Sqlite3 } from "./sqlite3/module.js";
import { Statement } from "./sqlite3/statement.js";
import { extendTrace } from "./sqlite3/verbose.js";

export * from "./sqlite3/constants.js";
export { Backup, Database, Statement };
export type { Cached, Sqlite3 };
export type { Sqlite3Error } from "./sqlite3/failures.js";

/** The `this` of a callback of `run`. */
export interface RunResult extends Statement<Database> {
  lastID: number;
  changes: number;
}

/** SQLite's version, the identifier of its sources, and its number. */
export const [VERSION, SOURCE_ID, VERSION_NUMBER] = native.sqliteVersion();

/** Databases by their files. */
export const cached: Cached = {
  Database: function (file: string, ...given: Rest): Database {
    if (file === "" || file === ":memory:") {
      return new Database(file, ...given);
    }
    const path = resolve(file);
    const known = cached.objects[path];
    if (known === undefined) {
      return (cached.objects[path] = new Database(path, ...given));
    }
    const callback = typeof given[0] === "number" ? given[1] : given[0];
    if (typeof callback === "function") {
      const told = () => callback.call(known, null);
      known.open ? process.nextTick(told) : known.once("open", told);
    }
    return known;
  } as Cached["Database"],
  objects: {},
};

// As there, so that programs which list the methods find them.
for (const { prototype } of [Database, Statement, Backup]) {
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (name !== "constructor" && typeof property.value === "function") {
      Object.defineProperty(prototype, name, { enumerable: true });
    }
  }
}

let isVerbose = false;

/** Has errors tell which call they are of. Returns the module. */
export function verbose(): Sqlite3 {
  if (!isVerbose) {
    isVerbose = true;
    for (const name of ["prepare", "get", "run", "all", "each", "map", "close", "exec"]) {
      extendTrace(Database.prototype, name);
    }
    for (const name of ["bind", "get", "run", "all", "each", "map", "reset", "finalize"]) {
      extendTrace(Statement.prototype, name);
    }
  }
  return self;
}

/** The module itself, for `import sqlite3 from "flatwater/sqlite3"`. */
const self = module.exports as Sqlite3;
export default self;
