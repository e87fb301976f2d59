/**
 * The check of a database for damage.
 *
 * Owns: the sentences of its rows, one by one. Invariants: a problem is yielded once, and a database without problems yields none; if
 * pages of an encrypted file cannot be decrypted, they are the problems, because all else follows from them. Leaves out: the check itself,
 * which SQLite does in a read of its own.
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
  private batches: Batches<readonly [row: string]>;
  /** The problems that were found are all. */
  private isOver = false;
  private readonly steps = new InOrder();

  /** `pages` has those of an encrypted file that cannot be decrypted. @internal */
  constructor(
    private readonly begin: () => Batches<readonly [row: string]>,
    private pages: (() => Promise<string[]>) | undefined,
  ) {
    this.batches = begin();
  }

  /** The next problem. */
  next(): Promise<IteratorResult<string, undefined>> {
    return this.steps.add(() => this.step());
  }

  private async step(): Promise<IteratorResult<string, undefined>> {
    if (this.found.length === 0) {
      await this.find();
    }
    await dueTurn();
    const value = this.found.pop();
    return value === undefined ? { done: true, value } : { done: false, value };
  }

  /** Finds some problems; none if there are no more. */
  private async find(): Promise<void> {
    while (this.found.length === 0 && !this.isOver) {
      try {
        const { done, value } = await this.batches.next();
        this.isOver = done === true;
        this.found = (value ?? []).flatMap(([row]) => native.problems(row)).reverse();
      } catch (error) {
        if (await this.findPages()) {
          return;
        }
        this.isOver = true;
        throw error;
      }
      if (this.found.length > 0 && this.pages !== undefined && !(await this.findPages())) {
        this.batches = this.begin();
      }
    }
  }

  /** At the first problem of an encrypted file finds the pages that cannot be decrypted. Returns false if there are none. */
  private async findPages(): Promise<boolean> {
    const { pages } = this;
    this.pages = undefined;
    if (pages === undefined) {
      return false;
    }
    // Its connection refuses every other page.
    await this.batches.return();
    this.found = (await pages()).reverse();
    this.isOver = this.found.length > 0;
    return this.isOver;
  }

  /** Ends it, and gives its connection back. */
  async return(): Promise<IteratorResult<string, undefined>> {
    this.found = [];
    this.isOver = true;
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
