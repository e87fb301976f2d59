/**
 * Kysely on this package: a dialect for a database.
 *
 * Owns: connections of Kysely, which are places for queries: the database, or the innermost open transaction. Invariants: queries outside
 * of transactions run side by side; a connection that is given back has no transaction; migrations hold the writer from the first to
 * the last. Leaves out: SQL and introspection, which are Kysely's own for SQLite.
 */

import {
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  type AbortableOperationOptions,
  type CompiledQuery,
  type DatabaseConnection,
  type DatabaseIntrospector,
  type Dialect,
  type DialectAdapter,
  type Driver,
  type Kysely,
  type QueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import { Scopes } from "./adapters/scopes.js";
import { RunReader } from "./calls/batch.js";
import type { CallOptions, ExecuteResult } from "./calls/calls.js";
import type { Database } from "./handles/database.js";
import type { Session } from "./handles/session.js";
import { RUN } from "./handles/target.js";
import { misuse } from "./native/errors.js";
import { nextTurn } from "./native/loop.js";
import type { Params } from "./values/sql.js";

/** What the dialect takes. */
export interface FlatwaterDialectConfig {
  /** The database, or a function that opens it when it is first used. `destroy` closes it. */
  database: Database | ((options?: AbortableOperationOptions) => Promise<Database>);
}

/**
 * ```js
 * const db = new Kysely({ dialect: new FlatwaterDialect({ database: await open("app.db") }) });
 * ```
 *
 * A transaction with access mode `read only` is a snapshot, and does not hold up writers. A signal that is aborted interrupts the query.
 */
export class FlatwaterDialect implements Dialect {
  constructor(private readonly config: FlatwaterDialectConfig) {}

  createDriver(): Driver {
    return new FlatwaterDriver(this.config);
  }

  createQueryCompiler(): QueryCompiler {
    return new SqliteQueryCompiler();
  }

  createAdapter(): DialectAdapter {
    return new FlatwaterAdapter();
  }

  // Kysely's own type.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  createIntrospector(db: Kysely<any>): DatabaseIntrospector {
    return new SqliteIntrospector(db);
  }
}

const TRANSACTION = Symbol("transaction");
const MIGRATIONS = Symbol("migrations");

/**
 * How many microtasks after its driver has ended a transaction Kysely may still let a statement of that through: it notes the end, and
 * gives the connection back, in fewer; and a program goes on after more.
 */
const NOTES_THE_END = 6;

/**
 * One acquisition, to which a statement belongs that reaches it. Kysely refuses statements of a transaction that is over, but not one
 * that comes while it ends, or has waited for another one meanwhile. It would run by itself, and stay:
 *
 * ```text
 * the program                           here
 * the function throws
 *                                       rollbackTransaction: isOver
 * trx.insert: Kysely lets it through    executeQuery: refused
 *                                       the engine has rolled back
 * trx.insert: Kysely lets it through    executeQuery: refused
 * Kysely notes the end
 * trx.insert: Kysely refuses it         a few microtasks later: not isOver
 * ```
 */
class Connection implements DatabaseConnection {
  readonly scopes: Scopes;
  /** What the statements of a transaction would run in has ended. */
  private isOver = false;
  private isReleased = false;
  /** How many statements were made, and how many are not answered. */
  private made = 0;
  private running = 0;

  constructor(private readonly database: Database) {
    this.scopes = new Scopes(database, true);
  }

  /** One await for a query: each costs about as much as a row. */
  async executeQuery<R>(query: CompiledQuery, options?: AbortableOperationOptions): Promise<QueryResult<R>> {
    const { sql, parameters } = query;
    this.made++;
    this.running++;
    try {
      // Programs select all columns of joined tables, and other dialects return the last of each name.
      const reader = new RunReader<R>("merged");
      const result = await this.session["perform"](RUN, sql, parameters as Params, signalOf(options), reader);
      return result.rows === undefined ? affected(result) : { rows: result.rows };
    } finally {
      this.running--;
    }
  }

  /** Yields rows as they come: how many at once the engine decides. */
  async *streamQuery<R>(
    { sql, parameters }: CompiledQuery,
    _chunkSize: number,
    options?: AbortableOperationOptions,
  ): AsyncIterableIterator<QueryResult<R>> {
    const batches = { signal: options?.signal, rows: "merged" } as const;
    this.made++;
    for await (const rows of this.session.batches<R>(sql, parameters as Params, batches)) {
      yield { rows };
    }
  }

  /** The signal that the query was given has cancelled it. */
  async cancelQuery(): Promise<void> {}

  async begin(name: symbol, isReadOnly: boolean): Promise<void> {
    await this.scopes.begin(name, isReadOnly);
    this.made = 0;
  }

  /** Migrations are applied without foreign keys, unless the program runs them in a transaction of its own. */
  async beginMigrating(): Promise<void> {
    if (this.made === 0 || !this.scopes.has(TRANSACTION)) {
      await this.scopes.beginMigrating(MIGRATIONS);
    }
  }

  /** Ends a transaction. If it could not be committed, Kysely asks for a rollback, and until then it is over. */
  async end(name: symbol, commits: boolean): Promise<void> {
    this.isOver = true;
    let made = this.running > 0 ? -1 : this.made;
    await this.scopes.end(name, commits);
    // Behind one that ran, others of the transaction wait in Kysely.
    while (made !== this.made) {
      made = this.made;
      await nextTurn();
    }
    void this.goOn();
  }

  private async goOn(): Promise<void> {
    for (let i = 0; i < NOTES_THE_END; i++) {
      await null;
    }
    this.isOver = false;
  }

  /** What is left running must not meet the transaction of somebody else. */
  async release(): Promise<void> {
    this.isReleased = true;
    await this.scopes.endFrom(0, false);
  }

  private get session(): Session {
    if (this.isReleased || this.isOver) {
      throw misuse(
        this.isReleased ? "the connection was given back" : "the transaction is over",
        "await the calls of a transaction, or on a connection, before its function returns",
      );
    }
    return this.scopes.innermost ?? this.database;
  }
}

class FlatwaterDriver implements Driver {
  private database: Database | undefined;

  constructor(private readonly config: FlatwaterDialectConfig) {}

  async init(options?: AbortableOperationOptions): Promise<void> {
    const { database } = this.config;
    this.database = typeof database === "function" ? await database(options) : database;
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    return new Connection(this.database!);
  }

  async releaseConnection(connection: Connection): Promise<void> {
    await connection.release();
  }

  beginTransaction(connection: Connection, settings: TransactionSettings): Promise<void> {
    return connection.begin(TRANSACTION, settings.accessMode === "read only");
  }

  commitTransaction(connection: Connection): Promise<void> {
    return connection.end(TRANSACTION, true);
  }

  rollbackTransaction(connection: Connection): Promise<void> {
    return connection.end(TRANSACTION, false);
  }

  savepoint(connection: Connection, name: string): Promise<void> {
    return connection.scopes.begin(name);
  }

  rollbackToSavepoint(connection: Connection, name: string): Promise<void> {
    return connection.scopes.rollbackTo(name);
  }

  releaseSavepoint(connection: Connection, name: string): Promise<void> {
    return connection.scopes.end(name, true);
  }

  async destroy(): Promise<void> {
    await this.database?.close();
  }
}

/** The lock of migrations is a transaction around all of them: it holds the writer, for other processes too. */
class FlatwaterAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }

  override get supportsTransactionalDdl(): boolean {
    return true;
  }

  override acquireMigrationLock(db: Kysely<unknown>): Promise<void> {
    return onConnection(db, (connection) => connection.beginMigrating());
  }

  override releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    return onConnection(db, async (connection) => {
      if (connection.scopes.has(MIGRATIONS)) {
        await connection.end(MIGRATIONS, true);
      }
    });
  }
}

function onConnection(db: Kysely<unknown>, work: (connection: Connection) => Promise<void>): Promise<void> {
  return db.getExecutor().provideConnection((connection) => work(connection as Connection));
}

/** Without a signal there is nothing to look at. */
function signalOf(options: AbortableOperationOptions | undefined): CallOptions | undefined {
  return options?.signal === undefined ? undefined : { signal: options.signal };
}

function affected<R>({ changes, lastInsertRowid }: ExecuteResult): QueryResult<R> {
  const numAffectedRows = BigInt(changes);
  return lastInsertRowid === null
    ? { numAffectedRows, rows: [] }
    : { numAffectedRows, insertId: BigInt(lastInsertRowid), rows: [] };
}
