/**
 * The database.
 *
 * Owns: closing, and what only a database has. Invariants: a call that was made before `close` is finished; one that is made after it
 * fails with kind `closed`. Leaves out: opening it (`open`), and the operations that it shares with transactions (`session`).
 */

import {
  flag,
  nothing,
  number,
  refused,
  textOf,
  timeoutOf,
  value,
  valuesOf,
  type CallOptions,
  type Statement,
} from "../calls/calls.js";
import { progressReader, type BackupOptions } from "../calls/backup.js";
import type { CheckpointInfo, CheckpointMode, ExportOptions, MigrateOptions } from "../calls/care.js";
import { IntegrityCheck, type CheckOptions } from "../calls/check.js";
import {
  BACKUP_OPTIONS,
  CALL_OPTIONS,
  check,
  CHECK_OPTIONS,
  EXPORT_OPTIONS,
  MIGRATE_OPTIONS,
  switchOf,
} from "../calls/given.js";
import type { ReadAs } from "../calls/types.js";
import { native, type Answer } from "../native/addon.js";
import { FlatwaterError, misuse, whole } from "../native/errors.js";
import { place } from "../native/flow.js";
import { cells, settle, type Reader } from "../native/loop.js";
import { debug, Origin } from "../native/tracing.js";
import { unused } from "../native/unused.js";
import { copiedRow } from "../values/copied.js";
import type { Params } from "../values/sql.js";
import { Connection, type ConnectionOptions } from "./connection.js";
import { Live, liveGroup, type LiveOptions, type LiveStatement } from "./live.js";
import type { Migrations } from "./options.js";
import { Session, type Row } from "./session.js";
import { Snapshot } from "./snapshot.js";
import { PreparedStatement } from "./statement.js";
import type { Stats } from "./stats.js";
import { beginHere, transact, type BegunTransaction, type Transaction } from "./transaction.js";

const PREPARE = 7;
const SNAPSHOT = 11;
const BACKUP = 12;
const CHECKPOINT = 13;
const VACUUM = 14;
const VACUUM_INTO = 15;
const INCREMENTAL_VACUUM = 16;
const SERIALIZE = 17;
const BACKUP_TOLD = 20;

/** An open database. Calls run side by side; nothing blocks the event loop. */
export class Database extends Session {
  /** @internal */
  isClosed = false;

  /** @internal */
  constructor(
    handle: number,
    readAs: ReadAs,
    /** As it was given; the address of a server without its user and its settings. */
    readonly path: string,
    /** @internal */
    readonly isServer: boolean,
  ) {
    super(handle, readAs, new Origin(handle, path));
    unused.register(this, handle, this);
  }

  /**
   * Runs a function in a transaction, which commits when the function's promise is fulfilled, and rolls back otherwise. It takes the
   * writer at once, so it never fails because somebody else has written.
   */
  transaction<T>(body: (tx: Transaction) => Promise<T> | T, options?: CallOptions): Promise<T> {
    return transact(this, body, options);
  }

  /**
   * Begins a transaction that the caller ends: `await using tx = await db.begin()` rolls it back where nothing commits it. Prefer
   * {@link transaction}, which cannot be forgotten. Other writes wait until it ends. In the code that awaits it, and what that calls, a
   * write on the database is refused meanwhile: it would wait for this transaction.
   */
  begin(options?: CallOptions): Promise<BegunTransaction> {
    return beginHere(this, options);
  }

  /**
   * Returns a connection of one's own, for what a pooled one refuses: transaction control as text, TEMP objects, ATTACH, PRAGMAs. Close
   * it, or use `await using`.
   */
  connection(options?: ConnectionOptions): Connection {
    return new Connection(this.handle, this.readAs, this.origin, options);
  }

  /** Resolves with what reads at one point in time, until it is closed. */
  async snapshot(options?: CallOptions): Promise<Snapshot> {
    const handle = await this.perform(SNAPSHOT, "", undefined, options, number);
    const snapshot = new Snapshot(handle, this.readAs, this.origin);
    unused.register(snapshot, snapshot["handle"], snapshot);
    return snapshot;
  }

  /** Compiles a statement, so that an error in it is reported. */
  async prepare<T = Row>(sql: string, options?: CallOptions): Promise<PreparedStatement<T>> {
    await this.perform(PREPARE, sql, undefined, options, nothing);
    return new PreparedStatement<T>(this, sql);
  }

  /** Yields the result of a query, and yields it again whenever a commit has changed it. */
  live<T = Row>(statement: Statement, params?: Params, options: LiveOptions = {}): Live<T> {
    const query = (): unknown[] => [textOf(statement), copiedRow(valuesOf(statement, params))];
    return new Live<T>(this.handle, query, options, this.readAs);
  }

  /** Yields the results of several queries, of one point in time. */
  liveGroup(
    statements: readonly LiveStatement[],
    options: LiveOptions = {},
  ): AsyncIterableIterator<Row[][]> & AsyncDisposable {
    return liveGroup(this.handle, statements, options, this.readAs);
  }

  /** Applies the migrations that were not applied yet, and resolves with their names. */
  migrate(migrations: Migrations, options?: MigrateOptions): Promise<string[]> {
    const migrate = () => {
      const ignores = switchOf(options, "ignoreMissing");
      return native.migrate(this.handle, migrations, ignores, timeoutOf(options), place());
    };
    return this.attempt(
      "migrate",
      undefined,
      options,
      MIGRATE_OPTIONS,
      { ...value, commitsSeveral: true },
      migrate,
    ) as Promise<string[]>;
  }

  /**
   * Copies the database into a new file, as of one point in time, while it is used. The file gets its name when it is complete and synced,
   * and overwrites nothing; a backup that fails or is given up leaves no file.
   */
  backup(path: string, options?: BackupOptions): Promise<void> {
    try {
      check(options, BACKUP_OPTIONS);
      if (options?.progress === undefined) {
        return this.copy(BACKUP, path, options);
      }
      const { progress, ...others } = options;
      return this.copy(BACKUP_TOLD, path, others, progressReader(progress));
    } catch (error) {
      return refused(error);
    }
  }

  /**
   * Copies the database into a new file that is encrypted with `key`, or into a plain one without: to encrypt or decrypt a database. It
   * needs the package `@flatwater/sqlcipher`.
   */
  export(path: string, options?: ExportOptions): Promise<void> {
    return this.attempt("export", undefined, options, EXPORT_OPTIONS, nothing, () =>
      native.export(this.handle, pathOf(path), options?.key, timeoutOf(options), place()),
    );
  }

  /**
   * Encrypts the database with another key, which writes every page; it waits for reads and other processes, up to `busyTimeout`. If it is
   * aborted, the file has either key, and the database goes on with that: {@link hasKey} tells which.
   */
  rekey(key: string | Uint8Array, options?: CallOptions): Promise<void> {
    return this.attempt("rekey", undefined, options, CALL_OPTIONS, nothing, () =>
      native.rekey(this.handle, key, timeoutOf(options), place()),
    );
  }

  /** Resolves with whether the database has this key, after calls of `rekey` from before. False for one without a key. */
  hasKey(key: string | Uint8Array, options?: CallOptions): Promise<boolean> {
    return this.attempt("hasKey", undefined, options, CALL_OPTIONS, flag, () =>
      native.hasKey(this.handle, key, timeoutOf(options), place()),
    );
  }

  /**
   * Yields what is wrong with the database: a sentence for each problem, at most 10,000. Foreign keys are not checked. Reads and writes
   * continue, but the WAL cannot start over meanwhile: check a large database table by table.
   */
  integrityCheck(options: CheckOptions = {}): IntegrityCheck {
    const { table, database = "main", signal, timeout } = options ?? {};
    const sql = () => {
      check(options, CHECK_OPTIONS);
      for (const name of [table, database]) {
        if (name !== undefined && typeof name !== "string") {
          throw misuse("table and database must be names");
        }
      }
      return native.checkSql(whole(database, "the name"), table, switchOf(options, "quick"));
    };
    const begin = () =>
      this.inBatches<readonly [row: string]>("integrityCheck", sql, undefined, { signal, timeout, rows: "array" });
    const ofPages = typeof database === "string" ? native.pagesSql(this.handle, database) : undefined;
    const pages = () => this.queryValues<string>(ofPages!, undefined, { signal, types: "stored" });
    return new IntegrityCheck(begin, ofPages === undefined ? undefined : pages);
  }

  /**
   * Resolves with how SQLite would run a statement: the rows of EXPLAIN QUERY PLAN as lines, indented as a tree. It does not run, and its
   * parameters need no values.
   */
  queryPlan(sql: string, options?: CallOptions): Promise<string> {
    const reader = { end: (plan: Answer) => String(plan) };
    return this.attempt("queryPlan", sql, options, CALL_OPTIONS, reader, () =>
      native.queryPlan(this.handle, textOf(sql), timeoutOf(options), place()),
    );
  }

  /** Copies the WAL into the database file, and resolves with the frames in the WAL and those of them that are copied. */
  checkpoint(mode: CheckpointMode = "passive", options?: CallOptions): Promise<CheckpointInfo> {
    const reader = { end: () => ({ frames: cells[0]!, copied: cells[1]! }) };
    if (!["passive", "full", "restart", "truncate"].includes(mode)) {
      return refused(misuse(`the mode of a checkpoint is "passive", "full", "restart" or "truncate"`));
    }
    return this.perform(CHECKPOINT, mode, undefined, options, reader);
  }

  /** Gives the space of free pages back to the file system. Other writes wait for it. */
  vacuum(options?: CallOptions): Promise<void> {
    return this.perform(VACUUM, "", undefined, options, nothing);
  }

  /** Writes a compact copy to a new file, while the database is used. */
  vacuumInto(path: string, options?: CallOptions): Promise<void> {
    return this.copy(VACUUM_INTO, path, options);
  }

  private copy(
    operation: number,
    path: string,
    options: CallOptions | undefined,
    reader: Reader<void> = nothing,
  ): Promise<void> {
    try {
      return this.perform(operation, pathOf(path), undefined, options, reader);
    } catch (error) {
      return refused(error);
    }
  }

  /** Gives back at most so many free pages, and resolves with their number. It needs `autoVacuum: "incremental"`. */
  incrementalVacuum(pages = 0, options?: CallOptions): Promise<number> {
    if (!Number.isInteger(pages) || pages < 0) {
      return refused(misuse("the number of pages must be a whole number"));
    }
    return this.perform(INCREMENTAL_VACUUM, String(pages), undefined, options, number);
  }

  /** Resolves with the database as the bytes of a file. */
  serialize(options?: CallOptions): Promise<Buffer> {
    return this.perform(SERIALIZE, "", undefined, options, value) as Promise<unknown> as Promise<Buffer>;
  }

  /** The counters of the database. Times that end in `Us` are in microseconds, others in milliseconds. */
  stats(): Stats {
    const stats = native.stats(this.handle);
    if (typeof stats === "number") {
      throw new FlatwaterError(native.failure());
    }
    return stats as Stats;
  }

  /** Finishes the calls that were made, and closes the database. It may be called more than once. */
  async close(): Promise<void> {
    this.isClosed = true;
    await settle(native.close(this.handle, place()), nothing);
    debug("closed %s", this.path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function pathOf(path: string): string {
  if (typeof path !== "string" || !path.isWellFormed()) {
    throw misuse("the path must be a string without halves of surrogate pairs");
  }
  return path;
}
