/**
 * Drizzle ORM 1.0 on this package.
 *
 * Owns: a database and a transaction of Drizzle, whose queries run on those of this package. Invariants: queries outside of transactions
 * run side by side; a nested transaction is a savepoint; a batch is one transaction in one step. Leaves out: SQL and the mapping of
 * columns, which are Drizzle's own for SQLite; its version 0.45 (`drizzle`).
 */

import type { BatchItem, BatchResponse } from "drizzle-orm/batch";
import { NoopCache, type Cache } from "drizzle-orm/cache/core";
import type { QueryMetadata, WithCacheConfig } from "drizzle-orm/cache/core/types";
import { entityKind } from "drizzle-orm/entity";
import { DefaultLogger, NoopLogger, type Logger } from "drizzle-orm/logger";
import { readMigrationFiles, type MigrationConfig } from "drizzle-orm/migrator";
import { getMigrationsToRun } from "drizzle-orm/migrator.utils";
import type { AnyRelations, EmptyRelations } from "drizzle-orm/relations";
import type { Query } from "drizzle-orm/sql/sql";
import {
  booleanFromInteger,
  bufferFromBytes,
  castToText,
  dateFromStoredMilliseconds,
  dateFromStoredSeconds,
  refineSqliteCodecs,
  SQLiteAsyncDatabase,
  SQLiteAsyncPreparedQuery,
  SQLiteAsyncSession,
  SQLiteAsyncTransaction,
  SQLiteDialect,
  type DrizzleSQLiteConfig,
  type SQLiteAsyncPreparedQueryConfig,
  type SQLiteExecuteMethod,
} from "drizzle-orm/sqlite-core";
import { upgradeAsyncIfNeeded } from "drizzle-orm/up-migrations/sqlite";
import { applyMissing, name } from "./adapters/history.js";
import { batchOf, executedBy, ofColumns, rowsOf } from "./adapters/statements.js";
import type { ExecuteResult } from "./calls/calls.js";
import type { Database } from "./handles/database.js";
import type { Transaction } from "./handles/transaction.js";
import type { RowForm } from "./values/rows.js";
import { isoOf } from "./values/times.js";

type Mode = "arrays" | "objects" | "raw";
type Mapper = (rows: unknown[]) => unknown;
type Prepared = SQLiteAsyncPreparedQuery<SQLiteAsyncPreparedQueryConfig & { type: "async" }>;

/** What a session of Drizzle takes from its configuration. */
interface SessionConfig {
  logger: Logger;
  cache: Cache;
  paramsInErrors: boolean | undefined;
}

/** What Drizzle's drivers use of it, and its types leave out. */
interface Hidden {
  executeMethod: SQLiteExecuteMethod;
  mapper: Mapper | undefined;
}

/** SQLite's own functions store texts in columns of times. */
const time = (dateOf: (value: string | number) => Date) => {
  const normalize = (value: string | number) => dateOf(typeof value === "string" ? (isoOf(value) ?? value) : value);
  return { normalize, normalizeInJson: normalize };
};

const codecs = refineSqliteCodecs({
  "integer:boolean": { normalize: booleanFromInteger },
  "integer:timestamp": time(dateFromStoredSeconds),
  "integer:timestamp_ms": time(dateFromStoredMilliseconds),
  "text:json": { normalize: JSON.parse },
  blob: { normalize: bufferFromBytes },
  "blob:json": { cast: castToText, normalize: JSON.parse },
  "blob:bigint": { cast: castToText, normalize: BigInt },
  numeric: { cast: castToText, normalize: String },
  "numeric:number": { normalize: Number },
  "numeric:bigint": { cast: castToText, normalize: BigInt },
});

/** Runs the statements of Drizzle on a database, or in a transaction. */
class FlatwaterSession<T extends AnyRelations> extends SQLiteAsyncSession<"async", ExecuteResult, T> {
  static override readonly [entityKind]: string = "FlatwaterSession";

  constructor(
    private readonly target: Database | Transaction,
    dialect: SQLiteDialect,
    private readonly relations: T,
    private readonly config: SessionConfig,
  ) {
    super(dialect, "async");
  }

  override prepareQuery(
    query: Query,
    mode: Mode,
    _prepare: boolean,
    method?: SQLiteExecuteMethod,
    mapper?: (rows: any[]) => any,
    metadata?: QueryMetadata,
    cacheConfig?: WithCacheConfig,
  ): Prepared {
    const { target, config } = this;
    const { sql } = query;
    const rows = async (params: unknown[]) => rowsOf(target, sql, ofColumns(params), { rows: formOf(mode) });
    const executors = {
      all: rows,
      get: (params: unknown[]) => rows(params).then(([row]) => row),
      run: async (params: unknown[]) => executedBy(target, sql, ofColumns(params)),
    };
    return new SQLiteAsyncPreparedQuery(
      "async",
      method,
      executors,
      query,
      mapper,
      mode,
      config.logger,
      config.cache,
      metadata,
      cacheConfig,
      config.paramsInErrors,
    );
  }

  override transaction<R>(body: (tx: FlatwaterTransaction<T>) => Promise<R>): Promise<R> {
    return this.target.transaction((tx) => {
      const session = new FlatwaterSession<T>(tx, this.dialect, this.relations, this.config);
      return body(new FlatwaterTransaction<T>("async", this.dialect, session, this.relations));
    });
  }

  async batch(items: readonly BatchItem<"sqlite">[]): Promise<unknown[]> {
    const prepared = items.map((item) => (item as unknown as { _prepare(): Prepared })._prepare());
    const statements = prepared.map((one) => {
      const { sql, params } = one.getQuery();
      this.config.logger.logQuery(sql, params);
      return [sql, ofColumns(params)] as const;
    });
    const results = await batchOf(this.target, statements, (at) => formOf(prepared[at]!.mode));
    return results.map(({ changes, lastInsertRowid, rows = [] }, at) => {
      const { executeMethod, mapper } = prepared[at] as unknown as Hidden;
      if (executeMethod === "run") {
        return { changes, lastInsertRowid };
      }
      const wanted = executeMethod === "get" ? rows.slice(0, 1) : rows;
      const mapped = mapper === undefined || executeMethod === "values" ? wanted : (mapper(wanted) as unknown[]);
      return executeMethod === "get" ? mapped[0] : mapped;
    });
  }
}

function formOf(mode: Mode): RowForm {
  return mode === "arrays" ? "array" : "merged";
}

/** An open transaction. */
export class FlatwaterTransaction<T extends AnyRelations = EmptyRelations> extends SQLiteAsyncTransaction<
  "async",
  ExecuteResult,
  T
> {
  static override readonly [entityKind]: string = "FlatwaterTransaction";
}

/** A database of Drizzle. */
export class FlatwaterDatabase<T extends AnyRelations = EmptyRelations> extends SQLiteAsyncDatabase<
  "async",
  ExecuteResult,
  T
> {
  static override readonly [entityKind]: string = "FlatwaterDatabase";

  /** The database of this package. */
  declare readonly $client: Database;

  /** Runs several statements, all of them or none, in one step. */
  batch<U extends BatchItem<"sqlite">, B extends Readonly<[U, ...U[]]>>(batch: B): Promise<BatchResponse<B>> {
    const { session } = this as unknown as { session: FlatwaterSession<T> };
    return session.batch(batch) as Promise<BatchResponse<B>>;
  }
}

/**
 * ```js
 * const db = drizzle(await open("app.db"), { relations });
 * ```
 *
 * A transaction takes the writer at once, whatever `behavior` it asks for.
 */
export function drizzle<T extends AnyRelations = EmptyRelations>(
  client: Database | (DrizzleSQLiteConfig<T> & { client: Database }),
  config?: DrizzleSQLiteConfig<T>,
): FlatwaterDatabase<T> {
  if ("client" in client) {
    const { client: database, ...rest } = client;
    return drizzle(database, rest as DrizzleSQLiteConfig<T>);
  }
  const { logger, cache, paramsInErrors } = config ?? {};
  const dialect = new SQLiteDialect({
    codecs: config?.codecs ?? codecs,
    useJitMappers: config?.jit ?? false,
  });
  const relations = config?.relations ?? ({} as T);
  const session = new FlatwaterSession<T>(client, dialect, relations, {
    logger: logger === true ? new DefaultLogger() : logger || new NoopLogger(),
    cache: cache ?? new NoopCache(),
    paramsInErrors,
  });
  const db = new FlatwaterDatabase<T>("async", dialect, session, relations);
  // As Drizzle's drivers do it.
  const $cache = cache && Object.assign(cache, { invalidate: cache.onMutate });
  return Object.assign(db, { $client: client }, $cache && { $cache });
}

interface Applied {
  row: number;
  id: number;
  hash: string;
  created_at: string;
  name: string | null;
}

/** Applies the migrations of a folder of drizzle-kit that were not applied yet: all of them or none, and each once. */
export async function migrate<T extends AnyRelations>(
  db: FlatwaterDatabase<T>,
  config: MigrationConfig,
): Promise<void> {
  const { $client } = db;
  const migrations = readMigrationFiles(config);
  const table = config.migrationsTable ?? "__drizzle_migrations";
  await db.transaction(async (tx) => {
    type Plain = Parameters<typeof upgradeAsyncIfNeeded>[1];
    const { newDb } = await upgradeAsyncIfNeeded(table, tx as unknown as Plain, migrations);
    if (newDb) {
      const columns = "id INTEGER PRIMARY KEY, hash text NOT NULL, created_at numeric, name text, applied_at TEXT";
      await tx.run(`CREATE TABLE ${name(table)} (${columns})`);
    }
  });
  await applyMissing($client, table, async () => {
    const dbMigrations = await $client.query<Applied>(
      `SELECT rowid AS "row", id, hash, created_at, name FROM ${name(table)} ORDER BY rowid`,
      [],
      { rows: "object", types: "stored" },
    );
    const missing = getMigrationsToRun({ localMigrations: migrations, dbMigrations });
    const steps = missing.map(({ sql, hash, folderMillis, name }) => ({
      statements: sql,
      row: { hash, created_at: folderMillis, name, applied_at: new Date().toISOString() },
    }));
    return { steps, last: dbMigrations.at(-1)?.row ?? 0 };
  });
}
