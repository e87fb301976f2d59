/**
 * Prepared statements, with the words of better-sqlite3 and promises.
 *
 * Owns: the forms in which a statement returns its rows. Leaves out: the compiled statement, which each connection keeps by its text.
 */

import { checkAs, madeAs } from "../calls/as.js";
import { RowStream, type BatchesOptions, type Make } from "../calls/batches.js";
import { refused, type CallOptions, type ExecuteResult, type Integers, type QueryOptions } from "../calls/calls.js";
import { check, STATEMENT_OPTIONS } from "../calls/given.js";
import { misuse } from "../native/errors.js";
import { copiedRow, isValue } from "../values/copied.js";
import { RowsReader, type RowForm } from "../values/rows.js";
import type { Params, SqlValue } from "../values/sql.js";
import type { Session } from "./session.js";

const COLUMNS = 18;

/** A column of the rows of a statement. What is of an expression, and not of a column of a table, is null. */
export interface ColumnDefinition {
  /** The name given with AS. Without AS, SQLite chooses it. */
  name: string;
  column: string | null;
  table: string | null;
  database: string | null;
  /** As it was declared. */
  type: string | null;
}

/** Values one by one, or one array or object of them. */
export type Bound = SqlValue[] | [Params];

/** The options of the calls of a statement. */
export type StatementOptions<T = unknown> = Omit<QueryOptions<T>, "rows">;

/** In which form rows come: as objects, as arrays, each as its first value, or as an object of objects by their tables. */
type Shape = RowForm | "value" | "expanded";

/** A statement that was compiled once, so that an error in it is reported. */
export class PreparedStatement<T = Record<string, unknown>> {
  private shape: Shape;
  private integers: Integers | undefined;
  private bound: Params | undefined;
  private on: Session;
  private given: StatementOptions<T> | undefined;

  /** @internal */
  constructor(
    /** What made it. */
    readonly database: Session,
    /** The text. */
    readonly source: string,
  ) {
    this.on = database;
    this.shape = database["readAs"].rows;
  }

  /** Runs it, and resolves with what it did. */
  run(...params: Bound): Promise<ExecuteResult> {
    return this.call(params, async (values) => {
      const { changes, lastInsertRowid } = await this.on.run(this.source, values, this.callOptions());
      return { changes, lastInsertRowid };
    });
  }

  /** Resolves with the first row, or with undefined. */
  get(...params: Bound): Promise<T | undefined> {
    return this.call(params, (values) =>
      this.shape === "value"
        ? this.on.queryOptionalValue<T>(this.source, values, this.valueOptions())
        : this.on.queryOptional<T>(this.source, values, this.rowOptions()),
    );
  }

  /** Resolves with all rows. */
  all(...params: Bound): Promise<T[]> {
    return this.call(params, (values) =>
      this.shape === "value"
        ? this.on.queryValues<T>(this.source, values, this.valueOptions())
        : this.on.query<T>(this.source, values, this.rowOptions()),
    );
  }

  /** Yields the rows, one by one. `timeout` is the deadline of each fetch. */
  iterate(...params: Bound): RowStream<T> {
    const { as, ...others } = this.given ?? {};
    const options = {
      ...others,
      ...this.readAs(),
      rows: this.shape === "value" ? "array" : this.shape,
    } as BatchesOptions;
    const batches = this.on["inBatches"](
      "batches",
      () => {
        checkAs(as);
        this.refuseAs();
        return this.source;
      },
      () => this.params(params),
      options,
    );
    const make = this.shape === "value" ? firstOf : as === undefined ? undefined : madeAs.bind(undefined, as);
    return new RowStream<T>(batches, make as Make<T> | undefined);
  }

  /** Resolves with what is known of the columns of its rows. It does not run. */
  columns(): Promise<ColumnDefinition[]> {
    const reader = new RowsReader("object");
    const options = this.callOptions();
    return this.on["perform"](COLUMNS, this.source, undefined, options, reader) as Promise<ColumnDefinition[]>;
  }

  /** Returns the first value of each row, in place of the row. */
  pluck(on = true): this {
    return this.shaped("value", on);
  }

  /** Returns rows as arrays. */
  raw(on = true): this {
    return this.shaped("array", on);
  }

  /** Returns rows as objects of the names of tables, each with its columns; what is of no table is in `$`. */
  expand(on = true): this {
    return this.shaped("expanded", on);
  }

  /** Returns all integers as bigints; or, if it is off, as numbers, of which one beyond 2^53 is refused. */
  safeIntegers(on = true): this {
    this.integers = on ? "bigint" : "number";
    return this;
  }

  /** Binds values for good. */
  bind(...params: Bound): this {
    if (this.bound !== undefined) {
      throw misuse("the statement has its values already");
    }
    this.bound = copiedRow(this.params(params) ?? []);
    return this;
  }

  /** The same statement, in a transaction, a snapshot or on a connection. */
  in(session: Session): PreparedStatement<T> {
    return this.changed((other) => (other.on = session));
  }

  /** The same statement, whose calls have these options: `await select.with({ timeout: 50 }).get(1)`. Others stay as they were. */
  with<R = T>(options: StatementOptions<R>): PreparedStatement<R> {
    check(options, STATEMENT_OPTIONS, false);
    return this.changed(
      (other) => (other.given = { ...this.given, ...options } as StatementOptions<T>),
    ) as unknown as PreparedStatement<R>;
  }

  private shaped(shape: Shape, on: boolean): this {
    if (on || this.shape === shape) {
      this.shape = on ? shape : "object";
    }
    return this;
  }

  private changed(change: (other: PreparedStatement<T>) => void): PreparedStatement<T> {
    const other = new PreparedStatement<T>(this.database, this.source);
    const { shape, integers, bound, on, given } = this;
    Object.assign(other, { shape, integers, bound, on, given });
    change(other);
    return other;
  }

  /** Makes a call, which never throws. */
  private call<R>(given: readonly unknown[], call: (values: Params | undefined) => Promise<R>): Promise<R> {
    try {
      return call(this.params(given));
    } catch (error) {
      return refused(error);
    }
  }

  private callOptions(): CallOptions {
    const { signal, timeout } = this.given ?? {};
    return { signal, timeout };
  }

  /** What `safeIntegers` says comes first: it was said of this statement alone. */
  private readAs(): Pick<QueryOptions, "integers"> {
    return { integers: this.integers ?? this.given?.integers };
  }

  private rowOptions(): QueryOptions<T> {
    return { ...this.given, ...this.readAs(), rows: this.shape as RowForm };
  }

  private valueOptions(): QueryOptions {
    this.refuseAs();
    const { as: _, ...others } = this.given ?? {};
    return { ...others, ...this.readAs() };
  }

  private refuseAs(): void {
    if (this.shape === "value" && this.given?.as !== undefined) {
      throw misuse("`as` makes something of a row, and `pluck` takes one value of it", "leave one of them out");
    }
  }

  private params(given: readonly unknown[]): Params | undefined {
    if (this.bound !== undefined) {
      if (given.length > 0) {
        throw misuse("the statement has its values already");
      }
      return this.bound;
    }
    const [first] = given;
    const isOne = given.length === 1 && typeof first === "object" && first !== null && !isValue(first);
    return (isOne ? first : given) as Params;
  }
}

function firstOf(row: unknown): unknown {
  return (row as unknown[])[0];
}
