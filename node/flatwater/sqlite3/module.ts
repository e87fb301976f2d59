/**
 * The type of the module, for `import sqlite3 from "flatwater/sqlite3"`, `require` and `verbose`.
 *
 * Owns: which names it has. Leaves out: what they are.
 */

import type { Backup } from "./backup.js";
import type { Database, Done } from "./database.js";
import type { Statement } from "./statement.js";

/** Databases by their files. */
export interface Cached {
  /** Returns the database of a file, or opens it. */
  Database: {
    new (filename: string, callback?: Done): Database;
    new (filename: string, mode?: number, callback?: Done): Database;
    (filename: string, callback?: Done): Database;
    (filename: string, mode?: number, callback?: Done): Database;
  };
  /** Those that were opened, by path. */
  objects: Record<string, Database>;
}

/** The module. */
export interface Sqlite3 {
  readonly Backup: typeof Backup;
  readonly Database: typeof Database;
  readonly Statement: typeof Statement;
  readonly cached: Cached;
  /** SQLite's version, the identifier of its sources, and its number. */
  readonly VERSION: string;
  readonly SOURCE_ID: string;
  readonly VERSION_NUMBER: number;
  /** Has errors tell which call they are of. Returns the module. */
  verbose(): Sqlite3;
  readonly OPEN_READONLY: number;
  readonly OPEN_READWRITE: number;
  readonly OPEN_CREATE: number;
  readonly OPEN_URI: number;
  readonly OPEN_FULLMUTEX: number;
  readonly OPEN_SHAREDCACHE: number;
  readonly OPEN_PRIVATECACHE: number;
  readonly OK: number;
  readonly ERROR: number;
  readonly INTERNAL: number;
  readonly PERM: number;
  readonly ABORT: number;
  readonly BUSY: number;
  readonly LOCKED: number;
  readonly NOMEM: number;
  readonly READONLY: number;
  readonly INTERRUPT: number;
  readonly IOERR: number;
  readonly CORRUPT: number;
  readonly NOTFOUND: number;
  readonly FULL: number;
  readonly CANTOPEN: number;
  readonly PROTOCOL: number;
  readonly EMPTY: number;
  readonly SCHEMA: number;
  readonly TOOBIG: number;
  readonly CONSTRAINT: number;
  readonly MISMATCH: number;
  readonly MISUSE: number;
  readonly NOLFS: number;
  readonly AUTH: number;
  readonly FORMAT: number;
  readonly RANGE: number;
  readonly NOTADB: number;
  readonly LIMIT_LENGTH: number;
  readonly LIMIT_SQL_LENGTH: number;
  readonly LIMIT_COLUMN: number;
  readonly LIMIT_EXPR_DEPTH: number;
  readonly LIMIT_COMPOUND_SELECT: number;
  readonly LIMIT_VDBE_OP: number;
  readonly LIMIT_FUNCTION_ARG: number;
  readonly LIMIT_ATTACHED: number;
  readonly LIMIT_LIKE_PATTERN_LENGTH: number;
  readonly LIMIT_VARIABLE_NUMBER: number;
  readonly LIMIT_TRIGGER_DEPTH: number;
  readonly LIMIT_WORKER_THREADS: number;
}
