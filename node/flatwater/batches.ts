/**
 * A result that is fetched as it is needed.
 *
 * Owns: reading a batch, and the forms of the iterator. Leaves out: its end (`parts`); how many rows are in a batch, which the engine
 * decides.
 */

import { formOf, integersOf, type CallOptions, type Integers } from "./calls.js";
import { BATCHES_OPTIONS, check } from "./given.js";
import type { Reader } from "./loop.js";
import { Parts } from "./parts.js";
import { decode, type RowForm } from "./rows.js";
import type { Trace } from "./tracing.js";

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
export class Batches<T> extends Parts<T[]> {
  /** @internal */
  constructor(
    begin: () => number,
    integers: number,
    private readonly options: BatchesOptions | undefined,
    trace: Trace | undefined,
  ) {
    const checked = () => {
      check(options, BATCHES_OPTIONS);
      return { integers: integersOf(options?.integers, integers), handle: begin() };
    };
    super(checked, options?.signal, trace);
  }

  /** @internal */
  protected reader(): Reader<T[] | undefined> {
    return new BatchReader<T>(formOf(this.options));
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
}
