/**
 * Prisma 7 on this package: a driver adapter.
 *
 * Owns: connections of Prisma, which are a database of this package each. Invariants: queries outside of transactions run side by side;
 * as many transactions may be begun at once as there are, and wait for the writer in the order in which they were. Leaves out: SQL, which
 * Prisma makes; values and errors (`prisma-values`), urls (`prisma-url`).
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
import { placeOf } from "./adapters/prisma-url.js";
import { argumentOf, errorFor, typed, type TimestampFormat } from "./adapters/prisma-values.js";
import { Scopes } from "./adapters/scopes.js";
import { tableOf } from "./adapters/statements.js";
import type { Database } from "./handles/database.js";
import { open } from "./handles/open.js";
import { Migrating } from "./handles/migrating.js";
import type { Options } from "./handles/options.js";
import type { Session } from "./handles/session.js";
import { native, type ScriptStatement } from "./native/addon.js";
import { FlatwaterError, misuse } from "./native/errors.js";

export type { TimestampFormat } from "./adapters/prisma-values.js";

/** What the adapter takes: where the database is, and the options of `open`. */
export interface PrismaFlatwaterConfig extends Options {
  /** A path, with `file:` before it or without. Of what Prisma takes behind a `?`, `socket_timeout` sets `busyTimeout`. */
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
      const format = this.options.timestampFormat ?? "iso8601";
      if (format !== "iso8601" && format !== "unixepoch-ms") {
        throw misuse(`timestampFormat must be "iso8601" or "unixepoch-ms"`);
      }
      const { path, ...ofUrl } = placeOf(url);
      return new Adapter(await open(path, { ...ofUrl, ...options }), format);
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
    return this.run(async (session) => {
      const table = await tableOf(session, query.sql, this.arguments(query), { integers: "bigint" });
      const columnTypes = typed(table);
      return { columnNames: table.names, columnTypes, rows: table.rows };
    });
  }

  executeRaw(query: SqlQuery): Promise<number> {
    return this.run(async (session) => (await session.run(query.sql, this.arguments(query))).changes);
  }

  /** Runs a statement, whose errors become those of Prisma. */
  protected run<T>(statement: (session: Session) => Promise<T>): Promise<T> {
    return mapping(() => statement(this.session));
  }

  protected arguments({ args, argTypes }: SqlQuery) {
    return args.map((given, at) => argumentOf(given, argTypes[at], this.format));
  }
}

class Adapter extends Queryable implements SqlDriverAdapter {
  /** In which Prisma's schema engine rebuilds tables: it sends the statements one by one, while foreign keys are off. */
  private rebuild: Migrating | undefined;
  /** It has deferred them, and so turns them off in its next statement. */
  private isAnnounced = false;

  protected get session(): Session {
    return this.rebuild ?? this.database;
  }

  /** All of the script is done, or nothing. */
  executeScript(script: string): Promise<void> {
    return mapping(() => this.database.executeScript(wholeOf(script, native.statements(script))));
  }

  /** Prisma's schema engine gives its scripts here too. */
  override executeRaw(query: SqlQuery): Promise<number> {
    const isAnnounced = this.isAnnounced;
    this.isAnnounced = false;
    return this.run(async (session) => {
      try {
        if (this.rebuild === undefined || !(await this.isDoneForEngine(query, false))) {
          return (await session.run(query.sql, this.arguments(query))).changes;
        }
      } catch (error) {
        const isRefused = this.rebuild === undefined && error instanceof FlatwaterError && error.kind === "misuse";
        if (!isRefused || !(await this.isDoneForEngine(query, isAnnounced))) {
          throw error;
        }
      }
      return 0;
    });
  }

  /** Does what a PRAGMA of the schema engine means, or a script of it. False if it is none. */
  private async isDoneForEngine({ sql, args }: SqlQuery, isAnnounced: boolean): Promise<boolean> {
    const statements = args.length === 0 ? native.statements(sql) : [];
    const [first] = statements;
    if (first === undefined || !(isLock(first) || isKeys(first))) {
      return false;
    }
    const [, , pragma, value] = first;
    const { rebuild } = this;
    if (statements.length > 1) {
      await this.database.executeScript(wholeOf(sql, statements));
    } else if (pragma === "defer_foreign_keys") {
      this.isAnnounced = value === "on";
    } else if (pragma === "foreign_keys" && value === "off" && isAnnounced) {
      this.rebuild = await Migrating.begin(this.database);
    } else if (pragma === "foreign_keys" && value === "on" && rebuild !== undefined) {
      this.rebuild = undefined;
      await rebuild.end(true);
    } else if (pragma === "foreign_keys" && rebuild === undefined) {
      return false;
    }
    return true;
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
    await this.rebuild?.end(false);
    await this.database.close();
  }
}

const OUTERMOST = Symbol("transaction");

class AdapterTransaction extends Queryable implements Transaction {
  /** Prisma sends no COMMIT of its own. */
  readonly options: TransactionOptions = { usePhantomQuery: true };
  private readonly scopes = new Scopes(this.database, false);
  /** Of the statement that ended it. */
  private failure: Error | undefined;

  protected get session(): Session {
    const { innermost, isOpen } = this.scopes;
    if (innermost === undefined || !isOpen) {
      throw this.isOver();
    }
    return innermost;
  }

  protected override run<T>(statement: (session: Session) => Promise<T>): Promise<T> {
    return super.run(async (session) => {
      try {
        return await statement(session);
      } catch (error) {
        if (!this.scopes.isOpen && error instanceof Error) {
          this.failure ??= error;
        }
        throw error;
      }
    });
  }

  /** What ended it says more than that it is over. */
  private isOver(): DriverAdapterError {
    const why = this.failure === undefined ? "" : `: ${this.failure.message}`;
    return new DriverAdapterError({ kind: "TransactionAlreadyClosed", cause: `the transaction is over${why}` });
  }

  commit(): Promise<void> {
    return mapping(async () => {
      if (this.failure !== undefined) {
        await this.scopes.endFrom(0, false);
        throw this.isOver();
      }
      await this.scopes.endFrom(0, true);
    });
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

/** Prisma turns foreign keys off around what it rebuilds, or defers them. */
function isKeys([, , pragma, value]: ScriptStatement): boolean {
  return (pragma === "foreign_keys" || pragma === "defer_foreign_keys") && value !== "";
}

/** Prisma's schema engine locks a file by it, which one of several connections cannot. */
function isLock([, , pragma, value]: ScriptStatement): boolean {
  return pragma === "locking_mode" && value !== "";
}

const MARKS = new Set(["BEGIN", "COMMIT", "END"]);

/**
 * A script with a transaction of its own, as the engine runs the dump of a database, if it says something of transactions or of foreign
 * keys: then the engine does the same for the whole script. A PRAGMA `foreign_keys` in it does nothing.
 */
function wholeOf(script: string, statements: ScriptStatement[]): string {
  const rest = statements.filter((statement) => !MARKS.has(statement[1]) && !isLock(statement));
  if (rest.length === statements.length && !rest.some(isKeys)) {
    return script;
  }
  if (rest.every(isKeys)) {
    return rest.map(([text]) => text).join(";\n");
  }
  const isWithoutKeys = rest.some(([, , pragma, value]) => pragma === "foreign_keys" && value === "off");
  const keys = isWithoutKeys ? ["PRAGMA foreign_keys = OFF"] : [];
  return [...keys, "BEGIN", ...rest.map(([text]) => text), "COMMIT;"].join(";\n");
}
