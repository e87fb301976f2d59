/**
 * The operations that databases, transactions and snapshots share.
 *
 * Owns: each of them, once. Every one begins at the call, never throws, and returns a promise. Leaves out: what only one of them has.
 */

import { native, type Answer } from "./addon.js";
import { Batches, type BatchesOptions } from "./batches.js";
import { BlobHandle } from "./blob.js";
import {
  executed,
  formOf,
  integersOf,
  madeAs,
  nothing,
  number,
  readExecuted,
  refused,
  textOf,
  throwIfAborted,
  timeoutOf,
  valuesOf,
  value,
  type CallOptions,
  type ExecuteResult,
  type QueryOptions,
  type Statement,
} from "./calls.js";
import { place } from "./flow.js";
import { cells, settle, type Reader } from "./loop.js";
import { collect } from "./many.js";
import { decode, readAll, RowsReader, type RowForm } from "./rows.js";
import { sql, Sql, type Params, type SqlValue } from "./sql.js";
import { unknownNames } from "./names.js";

const EXECUTE = 0;
export const QUERY = 1;
const OPTIONAL = 2;
const ONE = 3;
const VALUE = 4;
const OPTIONAL_VALUE = 5;
const SCRIPT = 6;

const JSON_ARRAYS = 1;
const JSON_STRINGS = 2;

/** A row as an object. */
export type Row = Record<string, unknown>;

/** The result of one statement of a batch: rows, if it has RETURNING. */
export interface BatchResult extends ExecuteResult {
  rows: Row[] | undefined;
}

/** A statement of a batch. */
export type BatchStatement = Statement | readonly [sql: string, params?: Params];

/** How {@link Session.queryJson} writes rows. */
export interface JsonOptions extends CallOptions {
  /** Rows as arrays of their values. Several columns may then have the same name. */
  arrays?: boolean | undefined;
  /** Integers beyond 2^53 - 1 as strings. Otherwise as numbers, which `JSON.parse` rounds. */
  bigIntegersAsStrings?: boolean | undefined;
  /** The names of columns whose texts are JSON, and become parts of the document. */
  embed?: readonly string[] | undefined;
}

/** Reads the first row of a result, or its first value. */
class FirstReader implements Reader<unknown> {
  private readonly rows: unknown[] = [];

  constructor(
    private readonly form: RowForm,
    private readonly isValue: boolean,
  ) {}

  chunk(text: string): void {
    decode(text, this.form, this.rows);
  }

  end(): unknown {
    const row = this.rows[0];
    return this.isValue ? (row as unknown[] | undefined)?.[0] : row;
  }
}

/** Runs statements: a database, an open transaction, or a snapshot. */
export abstract class Session {
  /** @internal */
  protected handle: number;
  /** @internal */
  protected readonly integers: number;

  /** @internal */
  constructor(handle: number, integers: number) {
    this.handle = handle;
    this.integers = integers;
  }

  /** Runs one statement that returns no rows. */
  execute(statement: Statement, params?: Params, options?: CallOptions): Promise<ExecuteResult> {
    return this.run(EXECUTE, statement, params, options, executed);
  }

  /**
   * Runs one statement for each row of parameters, all of them or none. Rows are taken in slices, so a large array does not hold the
   * loop; those of an iterable are collected before the call takes its place in the queue. Resolves with the changes.
   */
  async executeMany(
    statement: string,
    rows: Iterable<Params> | AsyncIterable<Params>,
    options?: CallOptions,
  ): Promise<number> {
    const many = native.rows(textOf(statement));
    return this.runMany(many, rows, options, number);
  }

  /** Runs several statements, all of them or none, and resolves with a result for each. */
  async batch(
    statements: Iterable<BatchStatement> | AsyncIterable<BatchStatement>,
    options?: CallOptions,
  ): Promise<BatchResult[]> {
    const reader: Reader<BatchResult[]> = { end: () => readBatch(this.integers) };
    const plain = (statement: BatchStatement): unknown =>
      statement instanceof Sql ? [statement.text, statement.values] : statement;
    return this.runMany(native.rows(), statements, options, reader, plain);
  }

  /** Runs the statements of a text, without parameters, all of them or none. */
  executeScript(script: string, options?: CallOptions): Promise<void> {
    return this.run(SCRIPT, script, undefined, options, nothing);
  }

  /** Resolves with all rows. */
  query<T = Row>(statement: Statement, params?: Params, options?: QueryOptions<T>): Promise<T[]> {
    try {
      const rows = this.run(QUERY, statement, params, options, new RowsReader(formOf(options)), options);
      const as = options?.as;
      return (as === undefined ? rows : rows.then((all) => all.map((row) => madeAs(as, row)))) as Promise<T[]>;
    } catch (error) {
      return refused(error);
    }
  }

  /** Resolves with the first row. Fails with kind `row_not_found` if there is none. */
  queryOne<T = Row>(statement: Statement, params?: Params, options?: QueryOptions<T>): Promise<T> {
    return this.first(ONE, statement, params, options) as Promise<T>;
  }

  /** Resolves with the first row, or with undefined. */
  queryOptional<T = Row>(statement: Statement, params?: Params, options?: QueryOptions<T>): Promise<T | undefined> {
    return this.first(OPTIONAL, statement, params, options);
  }

  /** Resolves with the first value of the first row. Fails with kind `row_not_found` if there is none. */
  queryValue<T = SqlValue>(statement: Statement, params?: Params, options?: QueryOptions): Promise<T> {
    return this.run(VALUE, statement, params, options, new FirstReader("array", true), options) as Promise<T>;
  }

  /** Resolves with the first value of the first row, or with undefined if there is no row. */
  queryOptionalValue<T = SqlValue>(
    statement: Statement,
    params?: Params,
    options?: QueryOptions,
  ): Promise<T | undefined> {
    return this.run(OPTIONAL_VALUE, statement, params, options, new FirstReader("array", true), options) as Promise<
      T | undefined
    >;
  }

  /** Resolves with the first value of each row. */
  async queryValues<T = SqlValue>(statement: Statement, params?: Params, options?: QueryOptions): Promise<T[]> {
    const rows = await this.query<[T]>(statement, params, { ...options, rows: "array", as: undefined });
    return rows.map((row) => row[0]);
  }

  /** Resolves with the rows as JSON in UTF-8: an array of objects. No object is made of a row. */
  queryJson(statement: Statement, params?: Params, options?: JsonOptions): Promise<Buffer> {
    const form = (options?.arrays ? JSON_ARRAYS : 0) + (options?.bigIntegersAsStrings ? JSON_STRINGS : 0);
    return this.attempt(options, value, () => {
      const [text, values] = [textOf(statement), valuesOf(statement, params)];
      return native.queryJson(this.handle, text, values, timeoutOf(options), place(), form, options?.embed);
    }) as Promise<unknown> as Promise<Buffer>;
  }

  /** Yields the rows in arrays, as they are needed. Leaving the loop frees the connection. */
  batches<T = Row>(statement: Statement, params?: Params, options?: BatchesOptions): Batches<T> {
    const begin = () => native.batches(this.handle, textOf(statement), valuesOf(statement, params), place());
    return new Batches<T>(begin, this.integers, options);
  }

  /** Yields the rows, one by one. Leaving the loop frees the connection. */
  stream<T = Row>(statement: Statement, params?: Params, options?: BatchesOptions): AsyncIterableIterator<T> {
    return this.batches<T>(statement, params, options).rows();
  }

  /** Opens a text or a blob of one row, to read and write it in parts. */
  async openBlob(table: string, column: string, rowid: number | bigint, options?: CallOptions): Promise<BlobHandle> {
    throwIfAborted(options);
    const answer = native.openBlob(this.handle, table, column, BigInt(rowid), timeoutOf(options), place());
    const reader = { end: (): [number, number] => [cells[0]!, cells[1]!] };
    const [handle, length] = await settle(answer, reader, options?.signal);
    return new BlobHandle(handle, length);
  }

  /** A query of a template: ``await db.sql`SELECT * FROM users WHERE id = ${id}` ``. */
  sql<T = Row>(strings: TemplateStringsArray, ...inserted: readonly (SqlValue | Sql)[]): Promise<T[]> {
    return this.query<T>(sql(strings, ...inserted));
  }

  /** @internal */
  protected run<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: CallOptions | undefined,
    reader: Reader<T>,
    query?: QueryOptions,
  ): Promise<T> {
    try {
      throwIfAborted(options);
      const text = textOf(statement);
      const integers = integersOf(query?.integers, this.integers);
      const values = valuesOf(statement, params);
      const answer = native.run(operation, this.handle, text, values, timeoutOf(options), place(), integers);
      return settle(answer, reader, options?.signal);
    } catch (error) {
      return refused(error);
    }
  }

  /** The same for other functions of the native module. @internal */
  protected attempt<T>(options: CallOptions | undefined, reader: Reader<T>, call: () => Answer): Promise<T> {
    try {
      throwIfAborted(options);
      return settle(call(), reader, options?.signal);
    } catch (error) {
      return refused(error);
    }
  }

  private first<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: QueryOptions<T> | undefined,
  ): Promise<T | undefined> {
    try {
      const row = this.run(operation, statement, params, options, new FirstReader(formOf(options), false), options);
      const as = options?.as;
      const made = as === undefined ? row : row.then((row) => (row === undefined ? undefined : madeAs(as, row)));
      return made as Promise<T | undefined>;
    } catch (error) {
      return refused(error);
    }
  }

  private async runMany<T, R>(
    many: number,
    given: Iterable<T> | AsyncIterable<T>,
    options: CallOptions | undefined,
    reader: Reader<R>,
    plain?: (one: T) => unknown,
  ): Promise<R> {
    const at = place();
    let isMade = false;
    try {
      const timeout = timeoutOf(options);
      const rest = collect(many, given, options?.signal, plain);
      if (rest !== undefined) {
        await rest;
        throwIfAborted(options);
      }
      isMade = true;
      return await settle(native.runMany(many, this.handle, timeout, at), reader, options?.signal);
    } finally {
      if (!isMade) {
        native.release(many);
      }
    }
  }
}

/** Reads the results of a batch; the rows of each statement have the form for its position. */
export function readBatch(integers: number, formAt: (at: number) => RowForm = () => "object"): BatchResult[] {
  return Array.from({ length: cells[0]! }, (_, at) => {
    const hasRows = native.batchResult(at);
    const executed = readExecuted();
    return { ...executed, rows: hasRows ? (readAll(native.batchRows(at, integers), formAt(at)) as Row[]) : undefined };
  });
}

unknownNames(Session.prototype);
