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
  type RootOperationNode,
  type TransactionSettings,
} from "kysely";
import { Snapshot, type Database } from "./database.js";
import { FlatwaterError, misuse } from "./errors.js";
import { enter, type Place } from "./flow.js";
import type { Session } from "./session.js";
import type { Params } from "./sql.js";
import { begin, end, type Transaction } from "./transaction.js";

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

/** What is open on a connection, from the outermost to the innermost. */
interface Scope {
  /** Of a savepoint its name. */
  name: string | typeof TRANSACTION | typeof MIGRATIONS;
  session: Transaction | Snapshot;
  place: Place | undefined;
}

const TRANSACTION = Symbol("transaction");
const MIGRATIONS = Symbol("migrations");

class Connection implements DatabaseConnection {
  private readonly scopes: Scope[] = [];

  constructor(private readonly database: Database) {}

  async executeQuery<R>(query: CompiledQuery, options?: AbortableOperationOptions): Promise<QueryResult<R>> {
    const hasRows = seemsToHaveRows(query);
    try {
      return await this.run(query, hasRows, options);
    } catch (error) {
      // Refused before anything ran.
      if (error instanceof FlatwaterError && error.message.startsWith(hasRows ? HAS_NO_ROWS : HAS_ROWS)) {
        return this.run(query, !hasRows, options);
      }
      throw error;
    }
  }

  private async run<R>(
    { sql, parameters }: CompiledQuery,
    hasRows: boolean,
    options: AbortableOperationOptions | undefined,
  ): Promise<QueryResult<R>> {
    const params = parameters as Params;
    if (hasRows) {
      return { rows: await this.session.query<R>(sql, params, { ...options, ...ROWS }) };
    }
    const { changes, lastInsertRowid } = await this.session.execute(sql, params, options);
    const numAffectedRows = BigInt(changes);
    return lastInsertRowid === null
      ? { numAffectedRows, rows: [] }
      : { numAffectedRows, insertId: BigInt(lastInsertRowid), rows: [] };
  }

  /** Yields rows as they come: how many at once the engine decides. */
  async *streamQuery<R>(
    { sql, parameters }: CompiledQuery,
    _chunkSize: number,
    options?: AbortableOperationOptions,
  ): AsyncIterableIterator<QueryResult<R>> {
    for await (const rows of this.session.batches<R>(sql, parameters as Params, { ...options, ...ROWS })) {
      yield { rows };
    }
  }

  /** The signal that the query was given has cancelled it. */
  async cancelQuery(): Promise<void> {}

  private get session(): Session {
    return this.scopes.at(-1)?.session ?? this.database;
  }

  /** Begins a transaction, or in one a nested one. It notes the place before it waits, so that the caller's code is inside. */
  async begin(name: Scope["name"], isReadOnly = false): Promise<void> {
    const around = this.scopes.at(-1);
    if (around?.session instanceof Snapshot) {
      throw misuse("a read-only transaction has no savepoints");
    }
    if (isReadOnly && around === undefined) {
      this.scopes.push({ name, session: await this.database.snapshot(), place: undefined });
      return;
    }
    const place = around === undefined ? enter() : undefined;
    const session = await begin(this.session["handle"], this.session["integers"]);
    if (place !== undefined) {
      place.handle = session["handle"];
    }
    this.scopes.push({ name, session, place });
  }

  has(name: Scope["name"]): boolean {
    return this.scopes.some((scope) => scope.name === name);
  }

  /** Ends what is open from the last of this name on. There is none after a commit that failed. */
  async end(name: Scope["name"], commits: boolean): Promise<void> {
    const from = this.scopes.findLastIndex((scope) => scope.name === name);
    if (from >= 0) {
      await this.endFrom(from, commits);
    }
  }

  /** Ends what is open from this position on, the innermost first. */
  async endFrom(from: number, commits: boolean): Promise<void> {
    for (const { session, place } of this.scopes.splice(from).reverse()) {
      if (place !== undefined) {
        place.handle = -1;
      }
      if (session instanceof Snapshot) {
        session.close();
      } else {
        await end(session, commits);
      }
    }
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
    await connection.endFrom(0, false);
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
    return connection.begin(name);
  }

  /** As in SQLite the savepoint itself stays. */
  async rollbackToSavepoint(connection: Connection, name: string): Promise<void> {
    await connection.end(name, false);
    await connection.begin(name);
  }

  releaseSavepoint(connection: Connection, name: string): Promise<void> {
    return connection.end(name, true);
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
    return onConnection(db, async (connection) => {
      if (!connection.has(TRANSACTION)) {
        await connection.begin(MIGRATIONS);
      }
    });
  }

  override releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    return onConnection(db, (connection) => connection.end(MIGRATIONS, true));
  }
}

function onConnection(db: Kysely<unknown>, work: (connection: Connection) => Promise<void>): Promise<void> {
  return db.getExecutor().provideConnection((connection) => work(connection as Connection));
}

/** Programs select all columns of joined tables, and other dialects return the last of each name. */
const ROWS = { rows: "merged" } as const;

/** How the engine refuses a statement in the wrong call. */
const HAS_ROWS = "the statement returns rows";
const HAS_NO_ROWS = "the statement returns no rows";

/** True if a statement is to be run as a query. Of raw SQL it is a guess. */
function seemsToHaveRows({ query, sql }: CompiledQuery): boolean {
  switch (query.kind) {
    case "SelectQueryNode":
      return true;
    case "InsertQueryNode":
    case "UpdateQueryNode":
    case "DeleteQueryNode":
    case "MergeQueryNode":
      return hasReturning(query);
    case "RawNode":
      return /^\s*(select|values|with|pragma|explain)\b|\breturning\b/i.test(sql);
    default:
      return false;
  }
}

function hasReturning(query: RootOperationNode): boolean {
  return ("returning" in query && query.returning !== undefined) || ("explain" in query && query.explain !== undefined);
}
