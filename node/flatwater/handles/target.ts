/**
 * What calls are made on.
 *
 * Owns: the handle, and making a call of the native module: its options are checked, its events are told, its answer is read. Invariant: a
 * call begins when it is made, never throws, and returns a promise. Leaves out: which calls there are (`session`).
 */

import {
  refused,
  textOf,
  timeoutOf,
  valuesOf,
  integersOf,
  type CallOptions,
  type QueryOptions,
  type Statement,
} from "../calls/calls.js";
import { CALL_OPTIONS, check, QUERY_OPTIONS, type Known } from "../calls/given.js";
import { checkGiven, collect, takesPlace, type Given, type Many } from "../calls/many.js";
import { letGo, typesOf, type ReadAs } from "../calls/types.js";
import { native, type Answer } from "../native/addon.js";
import { FlatwaterError, throwIfAborted } from "../native/errors.js";
import { place } from "../native/flow.js";
import { FAILED, settle, type Reader } from "../native/loop.js";
import { isTraced, Trace, type Origin } from "../native/tracing.js";
import { Sql, type Params } from "../values/sql.js";

export const EXECUTE = 0;
export const QUERY = 1;
export const OPTIONAL = 2;
export const ONE = 3;
export const VALUE = 4;
export const OPTIONAL_VALUE = 5;
export const SCRIPT = 6;
export const RUN = 19;
/** The same with values as node-sqlite3 stores them. */
export const RUN_NODE_SQLITE3 = 21;
export const OPTIONAL_NODE_SQLITE3 = 22;

/** The names of all operations of the native module. */
const OPERATIONS = [
  ...["execute", "query", "queryOptional", "queryOne", "queryValue", "queryOptionalValue", "executeScript", "prepare"],
  ...["", "", "begin", "snapshot", "backup", "checkpoint", "vacuum", "vacuumInto", "incrementalVacuum", "serialize"],
  "columns",
  ...["run", "backup", "run", "queryOptional"],
];
/** Those whose text is SQL. */
const HAVE_SQL = new Set([EXECUTE, QUERY, OPTIONAL, ONE, VALUE, OPTIONAL_VALUE, SCRIPT, 7, 18, RUN, 21, 22]);

/** A handle of the native module: a database, a transaction, a snapshot or a connection. */
export abstract class Target {
  /** @internal */
  protected handle: number;
  /** @internal */
  protected readonly readAs: ReadAs;

  /** @internal */
  protected readonly origin: Origin;

  /** @internal */
  constructor(handle: number, readAs: ReadAs, origin: Origin) {
    this.handle = handle;
    this.readAs = readAs;
    this.origin = origin;
  }

  /** A transaction. @internal */
  protected get isInside(): boolean {
    return false;
  }

  /** @internal */
  protected perform<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: CallOptions | undefined,
    reader: Reader<T>,
    query?: QueryOptions,
  ): Promise<T> {
    if (isTraced()) {
      const trace = this.trace(OPERATIONS[operation]!, HAVE_SQL.has(operation) ? statement : undefined);
      return trace.around(() => this.call(operation, statement, params, options, reader, query, trace));
    }
    return this.call(operation, statement, params, options, reader, query);
  }

  private call<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: CallOptions | undefined,
    reader: Reader<T>,
    query?: QueryOptions,
    trace?: Trace,
  ): Promise<T> {
    try {
      check(options, query === undefined ? CALL_OPTIONS : QUERY_OPTIONS);
      const text = textOf(statement);
      const integers = integersOf(query?.integers, this.readAs.integers);
      const values = valuesOf(statement, params);
      const timeout = timeoutOf(options);
      const types = typesOf(query?.types, this.readAs.types, true);
      let answer: Answer;
      try {
        answer = native.run(operation, this.handle, text, values, timeout, place(), integers, types);
      } finally {
        letGo(query?.types, types);
      }
      return settle(answer, reader, options?.signal, trace);
    } catch (error) {
      return refused(error);
    }
  }

  /** The same for other functions of the native module. @internal */
  protected attempt<T>(
    operation: string,
    statement: Statement | undefined,
    options: CallOptions | undefined,
    known: Known,
    reader: Reader<T>,
    call: () => Answer,
  ): Promise<T> {
    const begin = (trace?: Trace): Promise<T> => {
      try {
        check(options, known);
        return settle(call(), reader, options?.signal, trace);
      } catch (error) {
        return refused(error);
      }
    };
    if (isTraced()) {
      const trace = this.trace(operation, statement);
      return trace.around(() => begin(trace));
    }
    return begin();
  }

  /** @internal */
  protected trace(operation: string, statement: Statement | undefined): Trace {
    const sql = statement instanceof Sql ? statement.text : statement;
    return new Trace(this.origin, operation, typeof sql === "string" ? sql : undefined, this.isInside);
  }

  /** @internal */
  protected runMany<T, R>(
    operation: string,
    statement: Statement | undefined,
    given: Given<T>,
    options: CallOptions | undefined,
    reader: Reader<R>,
    of: Many<T>,
  ): Promise<R> {
    if (isTraced()) {
      const trace = this.trace(operation, statement);
      return trace.around(() => this.callMany(statement, given, options, reader, of, trace));
    }
    return this.callMany(statement, given, options, reader, of);
  }

  private async callMany<T, R>(
    statement: Statement | undefined,
    given: Given<T>,
    options: CallOptions | undefined,
    reader: Reader<R>,
    of: Many<T>,
    trace?: Trace,
  ): Promise<R> {
    const text = statement === undefined ? undefined : textOf(statement);
    const query: QueryOptions | undefined = of.wantsRows ? options : undefined;
    check(options, of.wantsRows ? QUERY_OPTIONS : CALL_OPTIONS);
    checkGiven(given);
    const [at, timeout, signal] = [place(), timeoutOf(options), options?.signal];
    const integers = integersOf(query?.integers, this.readAs.integers);
    const types = typesOf(query?.types, this.readAs.types, true);
    const many = native.rows(this.handle, takesPlace(given), text, types);
    if (many === FAILED) {
      letGo(query?.types, types);
      throw new FlatwaterError(native.failure());
    }
    let isMade = false;
    try {
      const rest = collect(many, given, signal, of);
      if (rest !== undefined) {
        await rest;
        throwIfAborted(signal);
      }
      isMade = true;
      return await settle(native.runMany(many, timeout, at, integers, types, of.wantsRows), reader, signal, trace);
    } finally {
      letGo(query?.types, types);
      if (!isMade) {
        native.release(many);
      }
    }
  }
}
