/**
 * The results of statements that may return rows or not: those of a batch, and of a run.
 *
 * Owns: reading them. Invariant: they come in chunks, first what each statement did, then the rows of those that have some. Leaves out:
 * making a batch (`session`).
 */

import { cells, type Reader } from "../native/loop.js";
import { native } from "../native/addon.js";
import { decode, HEADER, LIST, type RowForm, type Table } from "../values/rows.js";
import { readExecuted, type ExecuteResult, type QueryOptions } from "./calls.js";

/** What one statement did, whatever it is. */
export interface RunResult<T = Record<string, unknown>> extends ExecuteResult {
  /** The names of the columns; there are none if the statement returns no rows. */
  columns: string[];
  /** The rows, if the statement returns rows; there may be none. */
  rows: T[] | undefined;
}

/** The options of a run. */
export type RunOptions = Omit<QueryOptions, "as">;

/** What a statement did takes so many cells. The last says whether it has rows. */
const WIDTH = 4;

/** Reads the results of a batch. The rows of each statement have the form for its position. */
export class BatchReader implements Reader<RunResult[]> {
  private readonly results: RunResult[] = [];

  /** `knows` is called with what is known of the columns of a result. */
  constructor(
    private readonly formAt: (at: number) => RowForm = () => "object",
    private readonly knows: (schema: number) => void = () => {},
  ) {}

  chunk(text: string): void {
    const list = cells[LIST]!;
    if (list >= 0) {
      const result = this.results[list]!;
      const schema = cells[2]!;
      decode(text, this.formAt(list), result.rows!);
      if (result.columns.length === 0) {
        result.columns = native.columns(schema);
        this.knows(schema);
      }
      return;
    }
    const end = HEADER + cells[0]! * WIDTH;
    for (let at = HEADER; at < end; at += WIDTH) {
      const { changes, lastInsertRowid } = readExecuted(at);
      this.results.push({ changes, lastInsertRowid, columns: [], rows: cells[at + WIDTH - 1] === 1 ? [] : undefined });
    }
  }

  end(): RunResult[] {
    return this.results;
  }
}

/** Reads the result of a run. */
export class RunReader<T> implements Reader<RunResult<T>> {
  private readonly all: BatchReader;

  constructor(form: RowForm) {
    this.all = new BatchReader(() => form);
  }

  chunk(text: string): void {
    this.all.chunk(text);
  }

  end(): RunResult<T> {
    return this.all.end()[0] as RunResult<T>;
  }
}

/** Reads the rows of a run as arrays, and what is known of their columns. */
export class RunTableReader implements Reader<Table> {
  private declaredTypes: Table["declaredTypes"] = [];
  private readonly all = new BatchReader(
    () => "array",
    (schema) => (this.declaredTypes = native.declaredTypes(schema)),
  );

  chunk(text: string): void {
    this.all.chunk(text);
  }

  end(): Table {
    const { columns, rows } = this.all.end()[0]!;
    return { names: columns, declaredTypes: this.declaredTypes, rows: (rows ?? []) as unknown as Table["rows"] };
  }
}
