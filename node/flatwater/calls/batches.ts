/**
 * A result that is fetched as it is needed.
 *
 * Owns: reading a batch, its rows one by one, and the same as streams of the web. Invariant: a row of a batch that is there costs no more
 * than its promise, and a loop of such rows lets timers run. Leaves out: the end (`parts`); how many rows are in a batch, which the
 * engine decides.
 */

import { dueTurn, type Reader } from "../native/loop.js";
import type { Trace } from "../native/tracing.js";
import { decode, type RowForm } from "../values/rows.js";
import { formOf, type CallOptions, type Integers } from "./calls.js";
import { check, RUN_OPTIONS } from "./given.js";
import { InOrder } from "./order.js";
import { begunAs, Parts } from "./parts.js";
import type { ReadAs, Types } from "./types.js";

/** What a result in batches takes. `timeout` is the deadline of each fetch, not of all: for that there is `AbortSignal.timeout`. */
export interface BatchesOptions extends CallOptions {
  rows?: RowForm | undefined;
  integers?: Integers | undefined;
  types?: Types | undefined;
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
export class Batches<T> extends Parts<T[]> {
  /** @internal */
  constructor(
    begin: (types: number) => number,
    private readonly readAs: ReadAs,
    private readonly options: BatchesOptions | undefined,
    trace: Trace | undefined,
  ) {
    const checked = () => {
      check(options, RUN_OPTIONS);
      formOf(options, readAs.rows);
      return begunAs(options, readAs, begin);
    };
    super(checked, options?.signal, trace);
  }

  /** @internal */
  protected reader(): Reader<T[] | undefined> {
    return new BatchReader<T>(formOf(this.options, this.readAs.rows));
  }

  /** The rows, one by one. */
  rows(): RowStream<T> {
    return new RowStream<T>(this);
  }

  /** The batches as a stream of the web. */
  readable(): ReadableStream<T[]> {
    return readableOf(this);
  }
}

/** The clock is looked at once for so many rows. */
const BETWEEN_LOOKS = 64;

/** What a row becomes that has this number. */
export type Make<T> = (row: unknown, number: number) => T | Promise<T>;

/** The rows of a result, one by one. */
export class RowStream<T> implements AsyncIterableIterator<T> {
  /** Those of the batch that are left from `at` on. */
  private batch: unknown[] = [];
  private at = 0;
  /** So many rows were taken. */
  private count = 0;
  private readonly steps = new InOrder();

  /** @internal */
  constructor(
    private readonly batches: Batches<unknown>,
    /** What each row becomes. */
    private readonly make?: Make<T> | undefined,
  ) {}

  /** The next row. Several may be awaited: they come one after the other. */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.at < this.batch.length && this.at % BETWEEN_LOOKS !== 0 && this.steps.isFree && this.make === undefined) {
      return Promise.resolve({ done: false, value: this.take() as T });
    }
    return this.steps.add(() => this.step());
  }

  private async step(): Promise<IteratorResult<T, undefined>> {
    if (this.at < this.batch.length) {
      await dueTurn();
    } else {
      const { value } = await this.batches.next();
      this.batch = value ?? [];
      this.at = 0;
    }
    return this.at < this.batch.length ? { done: false, value: await this.take() } : { done: true, value: undefined };
  }

  private take(): T | Promise<T> {
    const row = this.batch[this.at++];
    return this.make === undefined ? (row as T) : this.make(row, this.count++);
  }

  /** Ends it, and lets go of the connection. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.batch = [];
    await this.batches.return();
    return { done: true, value: undefined };
  }

  /** The rows as a stream of the web. */
  readable(): ReadableStream<T> {
    return readableOf(this);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** A stream of the web that fetches what is asked of it, and lets go of all when it is cancelled. */
export function readableOf<T>(parts: {
  next(): Promise<IteratorResult<T, undefined>>;
  return(): Promise<unknown>;
}): ReadableStream<T> {
  return new ReadableStream<T>(
    {
      pull: async (controller) => {
        const { done, value } = await parts.next();
        if (done) {
          controller.close();
        } else {
          controller.enqueue(value);
        }
      },
      cancel: async () => void (await parts.return()),
    },
    { highWaterMark: 0 },
  );
}
