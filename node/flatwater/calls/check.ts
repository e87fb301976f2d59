/**
 * The check of a database for damage.
 *
 * Owns: the sentences of its rows, one by one. Invariant: a problem is yielded once, and a database without problems yields none. Leaves
 * out: the check itself, which SQLite does in a read of its own.
 */

import { native } from "../native/addon.js";
import { dueTurn } from "../native/loop.js";
import type { Batches } from "./batches.js";
import type { CallOptions } from "./calls.js";
import { InOrder } from "./order.js";

/** What is checked. `timeout` is the deadline of each fetch of problems. */
export interface CheckOptions extends CallOptions {
  /** Only this table and its indexes. Pages that are lost, or that two tables use, are not found. */
  table?: string | undefined;
  /** Does not compare indexes with their tables, which takes much less time. */
  quick?: boolean | undefined;
  /** An attached database. Default `main`. */
  database?: string | undefined;
}

/** The problems of a database: a sentence for each. */
export class IntegrityCheck implements AsyncIterableIterator<string> {
  private found: string[] = [];
  private readonly steps = new InOrder();

  /** @internal */
  constructor(private readonly batches: Batches<readonly [row: string]>) {}

  /** The next problem. */
  next(): Promise<IteratorResult<string, undefined>> {
    return this.steps.add(() => this.step());
  }

  private async step(): Promise<IteratorResult<string, undefined>> {
    while (this.found.length === 0) {
      const { done, value } = await this.batches.next();
      if (done) {
        return { done: true, value: undefined };
      }
      this.found = value.flatMap(([row]) => native.problems(row)).reverse();
    }
    await dueTurn();
    return { done: false, value: this.found.pop()! };
  }

  /** Ends it, and gives its connection back. */
  async return(): Promise<IteratorResult<string, undefined>> {
    this.found = [];
    await this.batches.return();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
