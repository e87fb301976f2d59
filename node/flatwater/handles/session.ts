/**
 * The operations that databases, transactions and snapshots share.
 *
 * Owns: each of them, once. Every one begins at the call, never throws, and returns a promise. Leaves out: making a call (`target`), and
 * what only one of them has.
 */

import { allMadeAs, checkAs, madeAs } from "../calls/as.js";
import { BatchReader, RunReader, type RunOptions, type RunResult } from "../calls/batch.js";
import { Batches, type BatchesOptions, type RowStream } from "../calls/batches.js";
import { BlobHandle } from "../calls/blob.js";
import {
  executed,
  formOf,
  nothing,
  number,
  refused,
  textOf,
  timeoutOf,
  valuesOf,
  value,
  type BatchStatement,
  type CallOptions,
  type ExecuteResult,
  type QueryOptions,
  type Statement,
} from "../calls/calls.js";
import { CALL_OPTIONS, check, JSON_OPTIONS, RUN_OPTIONS } from "../calls/given.js";
import { embeddedOf, formOfJson, jsonStream, type JsonOptions } from "../calls/json.js";
import { ROWS, ROWS_OF_RUNS, STATEMENTS, type Given } from "../calls/many.js";
import { native } from "../native/addon.js";
import { whole } from "../native/errors.js";
import { place } from "../native/flow.js";
import { cells } from "../native/loop.js";
import { isTraced } from "../native/tracing.js";
import { FirstReader, RowsReader, ValuesReader } from "../values/rows.js";
import { sql, type Sql, type Params, type SqlValue } from "../values/sql.js";
import { unknownNames } from "./names.js";
import { EXECUTE, ONE, OPTIONAL, OPTIONAL_VALUE, QUERY, RUN, SCRIPT, Target, VALUE } from "./target.js";

/** A row as an object. */
export type Row = Record<string, unknown>;

/** Runs statements: a database, an open transaction, or a snapshot. */
export abstract class Session extends Target {
  /** Runs one statement that returns no rows. */
  execute(statement: Statement, params?: Params, options?: CallOptions): Promise<ExecuteResult> {
    return this.perform(EXECUTE, statement, params, options, executed);
  }

  /**
   * Runs any one statement, and resolves with its rows, if it returns rows, and with what it changed: for programs that do not know what
   * the statement is, such as consoles and adapters.
   */
  run<T = Row>(statement: Statement, params?: Params, options?: RunOptions): Promise<RunResult<T>> {
    try {
      check(options, RUN_OPTIONS);
      return this.perform(
        RUN,
        statement,
        params,
        options,
        new RunReader<T>(formOf(options, this.readAs.rows)),
        options,
      );
    } catch (error) {
      return refused(error);
    }
  }

  /**
   * Runs one statement for each row of parameters, all of them or none. The rows are those of the moment of the call, and are read in
   * slices, so a large array does not hold the loop; calls that are made meanwhile come after this one. An async iterable is
   * collected first, and then the call takes its place. Resolves with the changes.
   */
  executeMany(statement: string, rows: Given<Params>, options?: CallOptions): Promise<number> {
    return this.runMany("executeMany", statement, rows, options, number, ROWS);
  }

  /**
   * Runs one statement that returns rows for each row of parameters, all of them or none: an INSERT with RETURNING. Resolves with the
   * rows of all runs, in the order of the parameters, which are taken as those of `executeMany`.
   */
  queryMany<T = Row>(statement: string, rows: Given<Params>, options?: QueryOptions<T>): Promise<T[]> {
    try {
      checkAs(options?.as);
      const reader = new RowsReader(formOf(options, this.readAs.rows));
      return madeOf(this.runMany("queryMany", statement, rows, options, reader, ROWS_OF_RUNS), reader, options);
    } catch (error) {
      return refused(error);
    }
  }

  /** Runs several statements, all of them or none, and resolves with a result for each. They are taken as the rows of `executeMany`. */
  batch(statements: Given<BatchStatement>, options?: CallOptions): Promise<RunResult[]> {
    return this.runMany("batch", undefined, statements, options, new BatchReader(() => this.readAs.rows), STATEMENTS);
  }

  /** Runs the statements of a text, without parameters, all of them or none. */
  executeScript(script: string, options?: CallOptions): Promise<void> {
    return this.perform(SCRIPT, script, undefined, options, nothing);
  }

  /** Resolves with all rows. */
  query<T = Row>(statement: Statement, params?: Params, options?: QueryOptions<T>): Promise<T[]> {
    try {
      checkAs(options?.as);
      const reader = new RowsReader(formOf(options, this.readAs.rows));
      return madeOf(this.perform(QUERY, statement, params, options, reader, options), reader, options);
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
    return this.perform(VALUE, statement, params, options, new FirstReader("array", true), options) as Promise<T>;
  }

  /** Resolves with the first value of the first row, or with undefined if there is no row. */
  queryOptionalValue<T = SqlValue>(
    statement: Statement,
    params?: Params,
    options?: QueryOptions,
  ): Promise<T | undefined> {
    return this.perform(OPTIONAL_VALUE, statement, params, options, new FirstReader("array", true), options) as Promise<
      T | undefined
    >;
  }

  /** Resolves with the first value of each row. */
  queryValues<T = SqlValue>(statement: Statement, params?: Params, options?: QueryOptions): Promise<T[]> {
    return this.perform(QUERY, statement, params, options, new ValuesReader(), options) as Promise<T[]>;
  }

  /** Resolves with the rows as JSON in UTF-8: an array of objects. No object is made of a row. */
  queryJson(statement: Statement, params?: Params, options?: JsonOptions): Promise<Buffer> {
    return this.attempt("queryJson", statement, options, JSON_OPTIONS, value, () => {
      const [text, values] = [textOf(statement), valuesOf(statement, params)];
      const [form, embedded] = [formOfJson(options), embeddedOf(options)];
      return native.queryJson(
        this.handle,
        text,
        values,
        timeoutOf(options),
        place(),
        form,
        embedded,
        this.readAs.types,
      );
    }) as Promise<unknown> as Promise<Buffer>;
  }

  /**
   * The same as a stream of bytes, in bounded memory: `new Response(db.streamJson("SELECT * FROM notes"))`. An error ends the stream,
   * and what was read before it is then a part of a document. `timeout` is the deadline of each fetch.
   */
  streamJson(statement: Statement, params?: Params, options?: JsonOptions): ReadableStream<Uint8Array> {
    const begin = () => {
      const [form, embedded] = [formOfJson(options), embeddedOf(options)];
      const values = valuesOf(statement, params);
      return native.batches(
        this.handle,
        textOf(statement),
        values,
        place(),
        timeoutOf(options),
        this.readAs.types,
        form,
        embedded,
      );
    };
    return jsonStream(begin, options, isTraced() ? this.trace("streamJson", statement) : undefined);
  }

  /** Yields the rows in arrays, as they are needed. Leaving the loop frees the connection. */
  batches<T = Row>(statement: Statement, params?: Params, options?: BatchesOptions): Batches<T> {
    return this.inBatches<T>(
      "batches",
      () => statement,
      () => params,
      options,
    );
  }

  /** Yields the rows, one by one. Leaving the loop frees the connection. */
  stream<T = Row>(statement: Statement, params?: Params, options?: BatchesOptions): RowStream<T> {
    return this.batches<T>(statement, params, options).rows();
  }

  /** What is wrong with the statement and the parameters is told by the first batch. @internal */
  protected inBatches<T>(
    operation: string,
    statement: () => Statement,
    params: (() => Params | undefined) | undefined,
    options: BatchesOptions | undefined,
  ): Batches<T> {
    const begin = (types: number) => {
      const sql = statement();
      return native.batches(this.handle, textOf(sql), valuesOf(sql, params?.()), place(), timeoutOf(options), types);
    };
    const trace = isTraced() ? this.trace(operation, operation === "batches" ? statement() : undefined) : undefined;
    return new Batches<T>(begin, this.readAs, options, trace);
  }

  /** Opens a text or a blob of one row, to read and write it in parts. */
  async openBlob(table: string, column: string, rowid: number | bigint, options?: CallOptions): Promise<BlobHandle> {
    const reader = { end: (): [number, number] => [cells[0]!, cells[1]!] };
    const open = () => {
      const [of, name] = [whole(table, "the name of the table"), whole(column, "the name of the column")];
      return native.openBlob(this.handle, of, name, BigInt(rowid), timeoutOf(options), place());
    };
    const [handle, length] = await this.attempt("openBlob", undefined, options, CALL_OPTIONS, reader, open);
    return new BlobHandle(handle, length);
  }

  /** A query of a template: ``await db.sql`SELECT * FROM users WHERE id = ${id}` ``. */
  sql<T = Row>(strings: TemplateStringsArray, ...inserted: readonly (SqlValue | Sql)[]): Promise<T[]> {
    return this.query<T>(sql(strings, ...inserted));
  }

  private first<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: QueryOptions<T> | undefined,
  ): Promise<T | undefined> {
    try {
      const as = options?.as;
      checkAs(as);
      const reader = new FirstReader(formOf(options, this.readAs.rows), false);
      const row = this.perform(operation, statement, params, options, reader, options);
      const made =
        as === undefined
          ? row
          : row.then((row) => (row === undefined ? undefined : madeAs(as, row, 0, reader.isOfWrite)));
      return made as Promise<T | undefined>;
    } catch (error) {
      return refused(error);
    }
  }
}

/** What a program wants of all rows. */
function madeOf<T>(rows: Promise<unknown[]>, reader: RowsReader, options: QueryOptions<T> | undefined): Promise<T[]> {
  const as = options?.as;
  // The outcome of a write is known by then.
  const signal = () => (reader.isOfWrite ? undefined : options?.signal);
  const made = as === undefined ? rows : rows.then((all) => allMadeAs(as, all, reader.isOfWrite, signal()));
  return made as Promise<T[]>;
}

unknownNames(Session.prototype);
