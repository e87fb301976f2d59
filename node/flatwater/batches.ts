/**
 * A result that is fetched as it is needed.
 *
 * Owns: the iterators of batches and of rows. Invariants: making one never throws; leaving the loop gives the connection back. Leaves
 * out: how many rows are in a batch, which the engine decides.
 */

import { native } from "./addon.js";
import { formOf, integersOf, type CallOptions, type Integers } from "./calls.js";
import { FlatwaterError } from "./errors.js";
import { FAILED, settle, type Reader } from "./loop.js";
import { decode, type RowForm } from "./rows.js";

/** What a result in batches takes. */
export interface BatchesOptions extends Pick<CallOptions, "signal"> {
  rows?: RowForm | undefined;
  integers?: Integers | undefined;
}

/** Reads a batch; the end of the result has none. */
class BatchReader<T> implements Reader<T[] | undefined> {
  private rows: T[] | undefined;

  constructor(private readonly form: RowForm) {}

  chunk(text: string): void {
    this.rows ??= [];
    decode(text, this.form, this.rows);
  }

  end(): T[] | undefined {
    return this.rows;
  }
}

/** The batches of a result: arrays of rows. */
export class Batches<T> implements AsyncIterableIterator<T[]> {
  private handle = -1;
  private form: RowForm = "object";
  private integers = 0;
  private isOver = false;
  /** Why it could not be made, which the first row tells. */
  private failure: { error: unknown } | undefined;

  /** @internal */
  constructor(
    begin: () => number,
    integers: number,
    private readonly options: BatchesOptions | undefined,
  ) {
    try {
      this.integers = integersOf(options?.integers, integers);
      this.form = formOf(options);
      this.handle = begin();
      if (this.handle === FAILED) {
        throw new FlatwaterError(native.failure());
      }
      unused.register(this, this.handle, this);
    } catch (error) {
      this.failure = { error };
    }
  }

  async next(): Promise<IteratorResult<T[], undefined>> {
    if (this.isOver) {
      return { done: true, value: undefined };
    }
    try {
      if (this.failure !== undefined) {
        throw this.failure.error;
      }
      this.options?.signal?.throwIfAborted();
      const reader = new BatchReader<T>(this.form);
      const rows = await settle(native.next(this.handle, this.integers), reader, this.options?.signal);
      if (rows !== undefined && !this.isOver) {
        return { done: false, value: rows };
      }
    } catch (error) {
      this.close();
      throw error;
    }
    this.close();
    return { done: true, value: undefined };
  }

  /** Ends it, and gives the connection back. */
  async return(): Promise<IteratorResult<T[], undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  /** The rows, one by one. */
  async *rows(): AsyncGenerator<T, void, undefined> {
    try {
      for await (const batch of this) {
        yield* batch;
      }
    } finally {
      this.close();
    }
  }

  /** The batches as a stream of the web. */
  readable(): ReadableStream<T[]> {
    return new ReadableStream<T[]>(
      {
        pull: async (controller) => {
          const { done, value } = await this.next();
          if (done) {
            controller.close();
          } else {
            controller.enqueue(value);
          }
        },
        cancel: () => this.close(),
      },
      { highWaterMark: 0 },
    );
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  private close(): void {
    if (!this.isOver) {
      this.isOver = true;
      unused.unregister(this);
      native.release(this.handle);
    }
  }
}

/** What was dropped without an end. */
const unused = new FinalizationRegistry<number>((handle) => native.release(handle));
