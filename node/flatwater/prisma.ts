/**
 * Prisma 7 on this package: a driver adapter.
 *
 * Owns: connections of Prisma, which are a database of this package each. Invariants: queries outside of transactions run side by side;
 * as many transactions may be begun at once as there are, and wait for the writer in the order in which they were. Leaves out: SQL, which
 * Prisma makes; values and errors (`prisma-values`).
 */

import {
  DriverAdapterError,
  type ConnectionInfo,
  type IsolationLevel,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
  type SqlQuery,
  type SqlQueryable,
  type SqlResultSet,
  type Transaction,
  type TransactionOptions,
} from "@prisma/driver-adapter-utils";
import { open, type Database } from "./database.js";
import type { Options } from "./options.js";
import { argumentOf, errorFor, typesOf, valueFor, type TimestampFormat } from "./prisma-values.js";
import { Scopes } from "./scopes.js";
import type { Session } from "./session.js";
import { executedBy, tableOf } from "./statements.js";

export type { TimestampFormat } from "./prisma-values.js";

/** What the adapter takes: where the database is, and the options of `open`. */
export interface PrismaFlatwaterConfig extends Options {
  /** A path, with `file:` before it or without. */
  url: string;
}

export interface PrismaFlatwaterOptions {
  /** The database in which migrations are tried. Default is one in memory. */
  shadowDatabaseUrl?: string;
  timestampFormat?: TimestampFormat;
}

const ADAPTER = "flatwater";

/** As many as SQLite allows in a statement. */
const MAX_BIND_VALUES = 32_766;

/**
 * ```js
 * const prisma = new PrismaClient({ adapter: new PrismaFlatwater({ url: "file:app.db" }) });
 * ```
 */
export class PrismaFlatwater implements SqlMigrationAwareDriverAdapterFactory {
  readonly provider = "sqlite";
  readonly adapterName = ADAPTER;

  constructor(
    private readonly config: PrismaFlatwaterConfig,
    private readonly options: PrismaFlatwaterOptions = {},
  ) {}

  connect(): Promise<SqlDriverAdapter> {
    return this.connectTo(this.config.url);
  }

  connectToShadowDb(): Promise<SqlDriverAdapter> {
    return this.connectTo(this.options.shadowDatabaseUrl ?? ":memory:");
  }

  private connectTo(url: string): Promise<SqlDriverAdapter> {
    const { url: _, ...options } = this.config;
    return mapping(async () => {
      const database = await open(url.replace(/^file:/, ""), options);
      return new Adapter(database, this.options.timestampFormat ?? "iso8601");
    });
  }
}

abstract class Queryable implements SqlQueryable {
  readonly provider = "sqlite";
  readonly adapterName = ADAPTER;

  constructor(
    protected readonly database: Database,
    protected readonly format: TimestampFormat,
  ) {}

  /** Where statements run. */
  protected abstract get session(): Session;

  queryRaw(query: SqlQuery): Promise<SqlResultSet> {
    return mapping(async () => {
      const table = await tableOf(this.session, query.sql, this.arguments(query), { integers: "auto" });
      const columnTypes = typesOf(table);
      for (const row of table.rows) {
        for (let at = 0; at < row.length; at++) {
          row[at] = valueFor(columnTypes[at]!, row[at]);
        }
      }
      return { columnNames: table.names, columnTypes, rows: table.rows };
    });
  }

  executeRaw(query: SqlQuery): Promise<number> {
    return mapping(async () => (await executedBy(this.session, query.sql, this.arguments(query))).changes);
  }

  private arguments({ args, argTypes }: SqlQuery) {
    return args.map((given, at) => argumentOf(given, argTypes[at], this.format));
  }
}

class Adapter extends Queryable implements SqlDriverAdapter {
  protected get session(): Session {
    return this.database;
  }

  /** All of the script is done, or nothing. */
  executeScript(script: string): Promise<void> {
    return mapping(() => this.database.executeScript(withoutForeignKeys(script)));
  }

  async startTransaction(isolation?: IsolationLevel): Promise<Transaction> {
    if (isolation !== undefined && isolation !== "SERIALIZABLE") {
      throw new DriverAdapterError({ kind: "InvalidIsolationLevel", level: isolation });
    }
    const transaction = new AdapterTransaction(this.database, this.format);
    await transaction.createSavepoint(OUTERMOST);
    return transaction;
  }

  getConnectionInfo(): ConnectionInfo {
    return { maxBindValues: MAX_BIND_VALUES, supportsRelationJoins: false };
  }

  async dispose(): Promise<void> {
    await this.database.close();
  }
}

const OUTERMOST = Symbol("transaction");

class AdapterTransaction extends Queryable implements Transaction {
  /** Prisma sends no COMMIT of its own. */
  readonly options: TransactionOptions = { usePhantomQuery: true };
  private readonly scopes = new Scopes(this.database, false);

  protected get session(): Session {
    const { innermost, isOpen } = this.scopes;
    if (innermost === undefined || !isOpen) {
      throw new DriverAdapterError({ kind: "TransactionAlreadyClosed", cause: "the transaction is over" });
    }
    return innermost;
  }

  commit(): Promise<void> {
    return mapping(() => this.scopes.endFrom(0, true));
  }

  rollback(): Promise<void> {
    return mapping(() => this.scopes.endFrom(0, false));
  }

  createSavepoint(name: string | symbol): Promise<void> {
    return mapping(() => this.scopes.begin(name));
  }

  rollbackToSavepoint(name: string): Promise<void> {
    return mapping(() => this.scopes.rollbackTo(name));
  }

  releaseSavepoint(name: string): Promise<void> {
    return mapping(() => this.scopes.end(name, true));
  }
}

/** Runs a function, whose errors become those of Prisma. */
async function mapping<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw errorFor(error);
  }
}

const SETS_FOREIGN_KEYS = /^[ \t]*PRAGMA foreign_keys *= *(ON|OFF) *;[ \t]*$/gim;

/** Prisma's migrations turn foreign keys off around what they rebuild. Here that is a script with a transaction of its own. */
function withoutForeignKeys(script: string): string {
  const rest = script.replace(SETS_FOREIGN_KEYS, "");
  return rest === script ? script : `PRAGMA foreign_keys=OFF;\nBEGIN;\n${rest}\n;COMMIT;`;
}
