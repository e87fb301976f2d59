/**
 * The options of `open`.
 *
 * Owns: their types and what they mean. The native module checks them. Times are in milliseconds.
 */

import type { Integers } from "../calls/calls.js";
import type { Types } from "../calls/types.js";
import type { DefineFunctions } from "../functions/types.js";
import type { RowForm } from "../values/rows.js";

/** Migrations: the path of a folder of SQL files, or their names and texts in order. */
export type Migrations = string | readonly (readonly [name: string, sql: string])[];

/** What a service sets. Every option has a default. */
export interface Options {
  /** How long a call waits for a lock of another process. Default 30,000. */
  busyTimeout?: number;
  /** Whether Flatwater keeps the WAL short, or another program, such as Litestream. Default `managed`. */
  checkpoint?: "managed" | "external";
  /** Create the file if it is not there. Default true. */
  create?: boolean;
  /** What survives a loss of power: the database without its last commits, or all commits. Default `normal`. */
  durability?: "normal" | "full";
  /** Check foreign keys. Default true. */
  foreignKeys?: boolean;
  /**
   * A module of functions and collations, which run in a worker thread of their own: its default export is called with what
   * defines them ([`Functions`]). They belong to the open file, and are there when the migrations run.
   */
  functions?: URL | string;
  /**
   * Defines functions and collations that have the variables of the program, as better-sqlite3's have: called as the default export of a
   * module of `functions` is. They run on the loop of this thread. SQLite's thread waits for each call until the loop is free, which is
   * held meanwhile: prefer `functions` for what is called for many rows, or takes long.
   */
  functionsOnLoop?: DefineFunctions;
  /** What integers become. Default `number`. */
  integers?: Integers;
  /** Switches the file to WAL, or keeps the mode that it has. Default `wal`. */
  journal?: "wal" | "keep";
  /** The key of an encrypted file: a passphrase, or the 32 bytes of the key itself. It needs the package `@flatwater/sqlcipher`. */
  key?: string | Uint8Array;
  /** Extensions that are loaded on each connection: a path, or an array of paths and of paths with their entry points. */
  loadExtension?: string | readonly (string | readonly [path: string, entry: string])[];
  /** Applied before `open` resolves. */
  migrations?: Migrations;
  /** SQL that runs on each new connection. */
  onOpen?: string | string[];
  /** How often the statistics of the query planner are brought up to date, and at the close. False: never. Default: once a day. */
  optimizeEvery?: number | false;
  /** Default false. */
  readOnly?: boolean;
  /** Connections that read. */
  readers?: number;
  /** In which form rows come where a call does not say. Default `object`. */
  rows?: RowForm;
  /** How long a call takes that counts as slow. Default: no call is slow. */
  slowStatement?: number;
  /** The deadline of each call that has none of its own. */
  timeout?: number;
  /** What most programs leave as it is. */
  tuning?: Tuning;
  /** What the values of columns mean. With another one than `stored`, arrays and plain objects can be bound, as JSON. Default `stored`. */
  types?: Types;
}

/** What most programs leave as it is. */
export interface Tuning {
  /** Other database files, each under the name by which SQL refers to it. */
  attach?: Record<string, string>;
  /** Whether a file that is created gives the space of deleted rows back. Default `none`. */
  autoVacuum?: "none" | "full" | "incremental";
  /** How long `close` waits for calls that run. Default 5,000. */
  closeWait?: number;
  /** The content of a database in memory, as `serialize` returns it. The path is `:memory:`. */
  deserialize?: Uint8Array | ArrayBuffer;
  /**
   * Take a name in double quotes for a text if there is no column of that name, as SQLite does by itself. Default false: a
   * misspelt column is an error. Views and triggers of the file that have such texts need it.
   */
  doubleQuotedStrings?: boolean;
  /** How many streams and snapshots may be open at a time. Default 8. */
  extraReaders?: number;
  /** Whether processes that write take turns (the file `<db>-turn`), or only poll for the lock. Default `auto`. */
  fairness?: "auto" | "off";
  /** Commits writes that arrive together in one transaction. Each keeps its own result. Default true. */
  group?: boolean;
  /** Asserts that no process changes the file. Default false. */
  assumeImmutable?: boolean;
  /** Runs statements that are known to be short in the call itself. Default true. */
  inline?: boolean;
  /**
   * A statement ends if SQLite takes more than so many bytes of memory for it, and with it a transaction or a snapshot.
   * Default: no limit; 128 MiB for a file that is `untrusted`.
   */
  memoryLimit?: number;
  /** How much of the file is mapped into memory. Default 0. */
  mmapBytes?: number;
  /** Allows a file on a network file system, which only one machine may use. Default false. */
  allowNetworkFilesystem?: boolean;
  /** Shows the figures of the database to `flatwater top`, in the file `<db>-observe-RANDOM`. On Unix systems. Default false. */
  observe?: boolean;
  /** The page size of a file that is created: a power of two from 512 to 65,536. Default 4,096. */
  pageSize?: number;
  /** How many requests may wait before calls wait for a place. Default 1,024. */
  queue?: number;
  /** How long a read may keep the WAL from starting over. Default: no limit. */
  readLimit?: number;
  /** The page cache of each reader. Default 4 MiB. */
  readerCacheBytes?: number;
  /**
   * A statement ends if its result takes more than so many bytes; of a stream this counts for each fetch. Default: no
   * limit; 64 MiB for a file that is `untrusted`.
   */
  resultLimit?: number;
  /** Another SQLite library of this process may have the file open. When it closes it, acknowledged writes can be lost. Default false. */
  allowSecondSqlite?: boolean;
  /** How long a snapshot may be open. Default 300,000. */
  snapshotAge?: number;
  /** How many compiled statements each connection keeps. Default 128. */
  statementCache?: number;
  /**
   * A statement ends after so many steps of SQLite's virtual machine. Default: no limit; 1,000,000,000 for a file that
   * is `untrusted`.
   */
  stepLimit?: number;
  /** How long a stream may go unused. Default 30,000. */
  streamIdle?: number;
  /** Where temporary data is kept. Default `auto`. */
  tempStore?: "auto" | "file" | "memory";
  /** After so long without a call a transaction is rolled back. Default 30,000. */
  transactionIdle?: number;
  /** The file may come from strangers: it is read-only unless `readOnly` is false, and what its schema may do is limited. */
  untrusted?: boolean;
  /** The VFS to open the file with. Default: SQLite's. */
  vfs?: string;
  /** The WAL starts over before it grows beyond this. Default 32 MiB. */
  walLimitBytes?: number;
  /** The page cache of the writer. Default 16 MiB. */
  writerCacheBytes?: number;
}
