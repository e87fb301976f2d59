/**
 * Prepared statements, with the words of better-sqlite3 and promises.
 *
 * Owns: the forms in which a statement returns its rows. Leaves out: the compiled statement, which each connection keeps by its text.
 */

import { RowStream } from "../calls/batches.js";
import { refused, type ExecuteResult, type QueryOptions } from "../calls/calls.js";
import { misuse } from "../native/errors.js";
import { copiedRow, isValue } from "../values/copied.js";
import { RowsReader } from "../values/rows.js";
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

/** A statement that was compiled once, so that an error in it is reported. */
export class PreparedStatement<T = Record<string, unknown>> {
  private form: "object" | "array" = "object";
  private isPlucked = false;
  private bound: Params | undefined;
  private on: Session;

  /** @internal */
  constructor(
    /** What made it. */
    readonly database: Session,
    /** The text. */
    readonly source: string,
  ) {
    this.on = database;
  }

  /** Runs it, and resolves with what it did. */
  run(...params: Bound): Promise<ExecuteResult> {
    return this.with(params, async (values) => {
      const { changes, lastInsertRowid } = await this.on.run(this.source, values);
      return { changes, lastInsertRowid };
    });
  }

  /** Resolves with the first row, or with undefined. */
  get(...params: Bound): Promise<T | undefined> {
    return this.with(params, (values) =>
      this.isPlucked
        ? this.on.queryOptionalValue<T>(this.source, values)
        : this.on.queryOptional<T>(this.source, values, this.options()),
    );
  }

  /** Resolves with all rows. */
  all(...params: Bound): Promise<T[]> {
    return this.with(params, (values) =>
      this.isPlucked
        ? this.on.queryValues<T>(this.source, values)
        : this.on.query<T>(this.source, values, this.options()),
    );
  }

  /** Yields the rows, one by one. */
  iterate(...params: Bound): RowStream<T> {
    const batches = this.on["inBatches"](
      "batches",
      () => this.source,
      () => this.params(params),
      this.options(),
    );
    return new RowStream<T>(batches, this.isPlucked);
  }

  /** Resolves with what is known of the columns of its rows. It does not run. */
  columns(): Promise<ColumnDefinition[]> {
    return this.on["perform"](
      COLUMNS,
      this.source,
      undefined,
      undefined,
      new RowsReader("object"),
    ) as Promise<unknown> as Promise<ColumnDefinition[]>;
  }

  /** Returns the first value of each row, in place of the row. */
  pluck(on = true): this {
    this.isPlucked = on;
    return this;
  }

  /** Returns rows as arrays. */
  raw(on = true): this {
    this.form = on ? "array" : "object";
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

  /** The same statement, in a transaction or a snapshot. */
  in(session: Session): PreparedStatement<T> {
    const other = new PreparedStatement<T>(this.database, this.source);
    other.form = this.form;
    other.isPlucked = this.isPlucked;
    other.bound = this.bound;
    other.on = session;
    return other;
  }

  /** Makes a call, which never throws. */
  private with<R>(given: readonly unknown[], call: (values: Params | undefined) => Promise<R>): Promise<R> {
    try {
      return call(this.params(given));
    } catch (error) {
      return refused(error);
    }
  }

  private options(): QueryOptions<T> {
    return { rows: this.isPlucked ? "array" : this.form };
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
