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
import type { Database } from "./database.js";
import { Scopes } from "./scopes.js";
import type { Session } from "./session.js";
import type { Params } from "./sql.js";
import { either, seemsToHaveRows } from "./statements.js";

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

class Connection implements DatabaseConnection {
  readonly scopes: Scopes;

  constructor(private readonly database: Database) {
    this.scopes = new Scopes(database, true);
  }

  executeQuery<R>(query: CompiledQuery, options?: AbortableOperationOptions): Promise<QueryResult<R>> {
    return either(isQuery(query), (hasRows) => this.run(query, hasRows, options));
  }

  private async run<R>(
    { sql, parameters }: CompiledQuery,
    hasRows: boolean,
    options: AbortableOperationOptions | undefined,
  ): Promise<QueryResult<R>> {
    const params = parameters as Params;
    if (hasRows) {
      return { rows: await this.session.query<R>(sql, params, { signal: options?.signal, ...ROWS }) };
    }
    const { changes, lastInsertRowid } = await this.session.execute(sql, params, { signal: options?.signal });
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
    for await (const rows of this.session.batches<R>(sql, parameters as Params, { signal: options?.signal, ...ROWS })) {
      yield { rows };
    }
  }

  /** The signal that the query was given has cancelled it. */
  async cancelQuery(): Promise<void> {}

  private get session(): Session {
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
    await connection.scopes.endFrom(0, false);
  }

  beginTransaction(connection: Connection, settings: TransactionSettings): Promise<void> {
    return connection.scopes.begin(TRANSACTION, settings.accessMode === "read only");
  }

  commitTransaction(connection: Connection): Promise<void> {
    return connection.scopes.end(TRANSACTION, true);
  }

  rollbackTransaction(connection: Connection): Promise<void> {
    return connection.scopes.end(TRANSACTION, false);
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
    return onConnection(db, async ({ scopes }) => {
      if (!scopes.has(TRANSACTION)) {
        await scopes.begin(MIGRATIONS);
      }
    });
  }

  override releaseMigrationLock(db: Kysely<unknown>): Promise<void> {
    return onConnection(db, ({ scopes }) => scopes.end(MIGRATIONS, true));
  }
}

function onConnection(db: Kysely<unknown>, work: (connection: Connection) => Promise<void>): Promise<void> {
  return db.getExecutor().provideConnection((connection) => work(connection as Connection));
}

/** Programs select all columns of joined tables, and other dialects return the last of each name. */
const ROWS = { rows: "merged" } as const;

/** True if a statement is to be run as a query. Of raw SQL it is a guess. */
function isQuery({ query, sql }: CompiledQuery): boolean {
  switch (query.kind) {
    case "SelectQueryNode":
      return true;
    case "InsertQueryNode":
    case "UpdateQueryNode":
    case "DeleteQueryNode":
    case "MergeQueryNode":
      return hasReturning(query);
    case "RawNode":
      return seemsToHaveRows(sql);
    default:
      return false;
  }
}

function hasReturning(query: RootOperationNode): boolean {
  return ("returning" in query && query.returning !== undefined) || ("explain" in query && query.explain !== undefined);
}
