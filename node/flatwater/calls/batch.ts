/**
 * The results of a batch.
 *
 * Owns: reading them. Invariant: they come in chunks, first what each statement did, then the rows of those that have some. Leaves out:
 * making a batch (`session`).
 */

import { cells, type Reader } from "../native/loop.js";
import { decode, HEADER, LIST, type RowForm } from "../values/rows.js";
import { readExecuted, type ExecuteResult } from "./calls.js";

/** The result of one statement of a batch: rows, if it has RETURNING. */
export interface BatchResult extends ExecuteResult {
  rows: Record<string, unknown>[] | undefined;
}

/** What a statement did takes so many cells. The last says whether it has rows. */
const WIDTH = 4;

/** Reads the results of a batch. The rows of each statement have the form for its position. */
export class BatchReader implements Reader<BatchResult[]> {
  private readonly results: BatchResult[] = [];

  constructor(private readonly formAt: (at: number) => RowForm = () => "object") {}

  chunk(text: string): void {
    const list = cells[LIST]!;
    if (list >= 0) {
      decode(text, this.formAt(list), this.results[list]!.rows!);
      return;
    }
    const end = HEADER + cells[0]! * WIDTH;
    for (let at = HEADER; at < end; at += WIDTH) {
      const { changes, lastInsertRowid } = readExecuted(at);
      this.results.push({ changes, lastInsertRowid, rows: cells[at + WIDTH - 1] === 1 ? [] : undefined });
    }
  }

  end(): BatchResult[] {
    return this.results;
  }
}
