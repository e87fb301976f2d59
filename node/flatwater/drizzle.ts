/**
 * Drizzle ORM 0.45 on this package.
 *
 * Owns: a database and a transaction of Drizzle, whose queries run on those of this package. Invariants: queries outside of transactions
 * run side by side; a nested transaction is a savepoint; a batch is one transaction in one step. Leaves out: SQL and the mapping of
 * columns, which are Drizzle's own for SQLite.
 */

import type { BatchItem, BatchResponse } from "drizzle-orm/batch";
import { NoopCache, type Cache } from "drizzle-orm/cache/core";
import type { WithCacheConfig } from "drizzle-orm/cache/core/types";
import { entityKind, is } from "drizzle-orm/entity";
import { DefaultLogger, NoopLogger, type Logger } from "drizzle-orm/logger";
import { readMigrationFiles, type MigrationConfig } from "drizzle-orm/migrator";
import {
  createTableRelationsHelpers,
  extractTablesRelationalConfig,
  type ExtractTablesWithRelations,
  type RelationalSchemaConfig,
  type TablesRelationalConfig,
} from "drizzle-orm/relations";
import { fillPlaceholders, type Query } from "drizzle-orm/sql/sql";
import {
  BaseSQLiteDatabase,
  SQLiteAsyncDialect,
  SQLitePreparedQuery,
  SQLiteSession,
  SQLiteTimestamp,
  SQLiteTransaction,
  type PreparedQueryConfig,
  type SelectedFieldsOrdered,
  type SQLiteExecuteMethod,
} from "drizzle-orm/sqlite-core";
import * as utils from "drizzle-orm/utils";
import type { DrizzleConfig } from "drizzle-orm/utils";
import { applyMissing, name } from "./adapters/history.js";
import { batchOf, executedBy, ofColumns, rowsOf } from "./adapters/statements.js";
import type { RunResult } from "./calls/batch.js";
import type { ExecuteResult } from "./calls/calls.js";
import type { Database } from "./handles/database.js";
import type { Session } from "./handles/session.js";
import type { Transaction } from "./handles/transaction.js";
import type { RowForm } from "./values/rows.js";
import type { Params } from "./values/sql.js";
import { isoOf } from "./values/times.js";

type Schema = Record<string, unknown>;
type Mapper = (rows: unknown[][]) => unknown;
type Metadata = { type: "select" | "update" | "delete" | "insert"; tables: string[] };

/** What a session of Drizzle takes from its configuration. */
interface SessionConfig {
  logger: Logger;
  cache: Cache;
}

/** What Drizzle's drivers use of it, and its types leave out. */
interface Hidden {
  queryWithCache<T>(sql: string, params: unknown[], query: () => Promise<T>): Promise<T>;
  joinsNotNullableMap: Record<string, boolean> | undefined;
}
/** An item of a batch. */
interface Preparing {
  _prepare(): { getQuery(): Query & { method?: string }; mapResult(result: unknown, isFromBatch: boolean): unknown };
}
const { mapResultRow } = utils as unknown as {
  mapResultRow(fields: SelectedFieldsOrdered, row: unknown[], joins: Hidden["joinsNotNullableMap"]): unknown;
};

/** A statement of Drizzle; prepared once, it may be run with other values for its placeholders. */
class FlatwaterPreparedQuery extends SQLitePreparedQuery<PreparedQueryConfig & { type: "async" }> {
  static override readonly [entityKind]: string = "FlatwaterPreparedQuery";

  /** Which columns are of times, and how many milliseconds their unit has: SQLite's own functions store texts in them. */
  private readonly times: readonly (readonly [at: number, unit: number])[];

  constructor(
    private readonly target: Session,
    query: Query,
    private readonly config: SessionConfig,
    private readonly fields: SelectedFieldsOrdered | undefined,
    method: SQLiteExecuteMethod,
    private readonly mapper: Mapper | undefined,
    metadata: Metadata | undefined,
    cacheConfig: WithCacheConfig | undefined,
    private readonly isInArrays: boolean,
  ) {
    super("async", method, query, config.cache, metadata, cacheConfig);
    this.times = (fields ?? []).flatMap(({ field }, at) =>
      is(field, SQLiteTimestamp) ? [[at, field.mode === "timestamp" ? 1000 : 1] as const] : [],
    );
  }

  run(values?: Schema): Promise<unknown> {
    return this.cached(values, (sql, params) => executedBy(this.target, sql, params));
  }

  async all(values?: Schema): Promise<unknown> {
    return this.mapAllResult(await this.rows(this.form, values));
  }

  async get(values?: Schema): Promise<unknown> {
    return this.mapGetResult(await this.rows(this.form, values));
  }

  values(values?: Schema): Promise<unknown[][]> {
    return this.rows("array", values) as Promise<unknown[][]>;
  }

  override mapAllResult(result: unknown): unknown {
    const rows = result as unknown[][];
    if (this.mapper !== undefined) {
      return this.mapper(rows);
    }
    return this.fields === undefined ? rows : rows.map((row) => this.mapped(row));
  }

  override mapGetResult(result: unknown): unknown {
    const [row] = result as unknown[][];
    if (row === undefined) {
      return undefined;
    }
    if (this.mapper !== undefined) {
      return this.mapper([row]);
    }
    return this.fields === undefined ? row : this.mapped(row);
  }

  /** @internal */
  isResponseInArrayMode(): boolean {
    return this.isInArrays;
  }

  /** In what form the rows are that are mapped. */
  get form(): RowForm {
    return this.fields === undefined && this.mapper === undefined ? "merged" : "array";
  }

  private mapped(row: unknown[]): unknown {
    for (const [at, unit] of this.times) {
      const iso = typeof row[at] === "string" ? isoOf(row[at]) : undefined;
      row[at] = iso === undefined ? row[at] : Date.parse(iso) / unit;
    }
    return mapResultRow(this.fields!, row, (this as unknown as Hidden).joinsNotNullableMap);
  }

  private rows(form: RowForm, values: Schema | undefined): Promise<unknown[]> {
    return this.cached(values, (sql, params) => rowsOf(this.target, sql, params, { rows: form }));
  }

  private cached<T>(values: Schema | undefined, run: (sql: string, params: Params) => Promise<T>): Promise<T> {
    const { sql } = this.query;
    const params = fillPlaceholders(this.query.params, values ?? {});
    this.config.logger.logQuery(sql, params);
    return (this as unknown as Hidden).queryWithCache(sql, params, async () => run(sql, ofColumns(params)));
  }
}

/** Runs the statements of Drizzle on a database, or in a transaction. */
class FlatwaterSession<F extends Schema, T extends TablesRelationalConfig> extends SQLiteSession<
  "async",
  ExecuteResult,
  F,
  T
> {
  static override readonly [entityKind]: string = "FlatwaterSession";

  constructor(
    private readonly target: Database | Transaction,
    private readonly own: SQLiteAsyncDialect,
    private readonly schema: RelationalSchemaConfig<T> | undefined,
    private readonly config: SessionConfig,
  ) {
    super(own);
  }

  override prepareQuery(
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    method: SQLiteExecuteMethod,
    isInArrays: boolean,
    mapper?: Mapper,
    metadata?: Metadata,
    cacheConfig?: WithCacheConfig,
  ): FlatwaterPreparedQuery {
    const { target, config } = this;
    return new FlatwaterPreparedQuery(target, query, config, fields, method, mapper, metadata, cacheConfig, isInArrays);
  }

  override transaction<R>(body: (tx: FlatwaterTransaction<F, T>) => Promise<R>): Promise<R> {
    return this.target.transaction((tx) => {
      const session = new FlatwaterSession<F, T>(tx, this.own, this.schema, this.config);
      return body(new FlatwaterTransaction<F, T>("async", this.own, session, this.schema));
    });
  }

  async batch(items: readonly BatchItem<"sqlite">[]): Promise<unknown[]> {
    const prepared = items.map((item) => (item as unknown as Preparing)._prepare());
    const queries = prepared.map((one) => one.getQuery());
    queries.forEach(({ sql, params }) => this.config.logger.logQuery(sql, params));
    const statements = queries.map(({ sql, params }) => [sql, ofColumns(params)] as const);
    const results = await batchOf(this.target, statements, (at) => {
      const one = prepared[at];
      return one instanceof FlatwaterPreparedQuery ? one.form : queries[at]!.method === "values" ? "array" : "merged";
    });
    return results.map((result, at) => {
      const one = prepared[at]!;
      // What was built by `run`, `all`, `get` and `values` of the database takes the whole result.
      return one instanceof FlatwaterPreparedQuery && !isRun(one)
        ? one.mapResult(result.rows ?? [], true)
        : one.mapResult(one instanceof FlatwaterPreparedQuery ? plain(result) : result, true);
    });
  }

  /** @internal */
  extractRawRunValueFromBatchResult(result: unknown): unknown {
    return plain(result as RunResult);
  }

  /** @internal */
  extractRawAllValueFromBatchResult(result: unknown): unknown {
    return (result as RunResult).rows ?? [];
  }

  /** @internal */
  extractRawGetValueFromBatchResult(result: unknown): unknown {
    return (result as RunResult).rows?.[0];
  }

  /** @internal */
  extractRawValuesValueFromBatchResult(result: unknown): unknown {
    return (result as RunResult).rows ?? [];
  }
}

function isRun(prepared: FlatwaterPreparedQuery): boolean {
  return (prepared as unknown as { executeMethod: SQLiteExecuteMethod }).executeMethod === "run";
}

function plain({ changes, lastInsertRowid }: RunResult): ExecuteResult {
  return { changes, lastInsertRowid };
}

/** An open transaction. */
export class FlatwaterTransaction<F extends Schema, T extends TablesRelationalConfig> extends SQLiteTransaction<
  "async",
  ExecuteResult,
  F,
  T
> {
  static override readonly [entityKind]: string = "FlatwaterTransaction";
}

/** A database of Drizzle. */
export class FlatwaterDatabase<TSchema extends Schema = Record<string, never>> extends BaseSQLiteDatabase<
  "async",
  ExecuteResult,
  TSchema
> {
  static override readonly [entityKind]: string = "FlatwaterDatabase";

  /** The database of this package. */
  declare readonly $client: Database;

  /** Runs several statements, all of them or none, in one step. */
  batch<U extends BatchItem<"sqlite">, T extends Readonly<[U, ...U[]]>>(batch: T): Promise<BatchResponse<T>> {
    const { session } = this as unknown as { session: FlatwaterSession<TSchema, TablesRelationalConfig> };
    return session.batch(batch) as Promise<BatchResponse<T>>;
  }
}

/**
 * ```js
 * const db = drizzle(await open("app.db"), { schema });
 * ```
 *
 * A transaction takes the writer at once, whatever `behavior` it asks for.
 */
export function drizzle<TSchema extends Schema = Record<string, never>>(
  client: Database | (DrizzleConfig<TSchema> & { client: Database }),
  config?: DrizzleConfig<TSchema>,
): FlatwaterDatabase<TSchema> {
  if ("client" in client) {
    const { client: database, ...rest } = client;
    return drizzle(database, rest as DrizzleConfig<TSchema>);
  }
  const { logger, cache, casing, schema } = config ?? {};
  const dialect = new SQLiteAsyncDialect(casing === undefined ? {} : { casing });
  const session = new FlatwaterSession<TSchema, ExtractTablesWithRelations<TSchema>>(
    client,
    dialect,
    schema && schemaOf(schema),
    {
      logger: logger === true ? new DefaultLogger() : logger || new NoopLogger(),
      cache: cache ?? new NoopCache(),
    },
  );
  const db = new FlatwaterDatabase<TSchema>("async", dialect, session, schema && schemaOf(schema));
  // As Drizzle's drivers do it.
  const $cache = cache && Object.assign(cache, { invalidate: cache.onMutate });
  return Object.assign(db, { $client: client }, $cache && { $cache });
}

function schemaOf<TSchema extends Schema>(
  fullSchema: TSchema,
): RelationalSchemaConfig<ExtractTablesWithRelations<TSchema>> {
  const { tables, tableNamesMap } = extractTablesRelationalConfig(fullSchema, createTableRelationsHelpers);
  return { fullSchema, schema: tables as ExtractTablesWithRelations<TSchema>, tableNamesMap };
}

/** Applies the migrations of a folder of drizzle-kit that were not applied yet: all of them or none, and each once. */
export async function migrate<TSchema extends Schema>(
  { $client }: FlatwaterDatabase<TSchema>,
  config: MigrationConfig,
): Promise<void> {
  const migrations = readMigrationFiles(config);
  const table = config.migrationsTable ?? "__drizzle_migrations";
  await $client.execute(
    `CREATE TABLE IF NOT EXISTS ${name(table)} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`,
  );
  await applyMissing($client, table, async () => {
    const [last, latest] = await $client.queryOne<[number | null, number | string | null]>(
      `SELECT max(rowid), max(created_at) FROM ${name(table)}`,
      [],
      { rows: "array" },
    );
    const missing = migrations.filter(({ folderMillis }) => latest === null || Number(latest) < folderMillis);
    const steps = missing.map(({ sql, hash, folderMillis }) => ({
      statements: sql,
      row: { hash, created_at: folderMillis },
    }));
    return { steps, last: last ?? 0 };
  });
}
