/**
 * What goes on for longer than one call: its next part is awaited.
 *
 * Owns: the iterator of batches and of live results, and its end. Invariants: leaving the loop lets go of what is held; a part that is
 * awaited then is the end; what is wrong with the call is told by the first part; a loop of parts that are there at once lets timers
 * run. Leaves out: what a part is.
 */

import { native } from "../native/addon.js";
import { FlatwaterError } from "../native/errors.js";
import { place } from "../native/flow.js";
import { dueTurn, FAILED, settle, type Cancels, type Reader } from "../native/loop.js";
import type { Trace } from "../native/tracing.js";
import { unused } from "../native/unused.js";
import { integersOf, type QueryOptions } from "./calls.js";
import { InOrder } from "./order.js";
import { letGo, typesOf, type ReadAs } from "./types.js";

/** What gives up the part that is awaited: the end, and the signal of the program. */
class Ends implements Cancels {
  private cancel: (() => void) | undefined;
  private isOver = false;
  private given: { reason: unknown } | undefined;

  constructor(private readonly signal: AbortSignal | undefined) {}

  get aborted(): boolean {
    return this.isOver || this.given !== undefined || this.signal?.aborted === true;
  }

  get reason(): unknown {
    return this.given === undefined ? this.signal?.reason : this.given.reason;
  }

  addEventListener(_: "abort", cancel: () => void): void {
    this.cancel = cancel;
    this.signal?.addEventListener("abort", cancel, { once: true });
  }

  removeEventListener(_: "abort", cancel: () => void): void {
    this.cancel = undefined;
    this.signal?.removeEventListener("abort", cancel);
  }

  throwIfAborted(): void {
    this.signal?.throwIfAborted();
  }

  end(): void {
    this.isOver = true;
    this.cancel?.();
  }

  giveUp(reason: unknown): void {
    this.given ??= { reason };
    this.cancel?.();
  }
}

/** What goes on, and how its parts are read. */
interface Begun {
  handle: number;
  integers: number;
  types: number;
  /** `types` was made for this. */
  isOwn: boolean;
}

/** Begins what reads results. */
export function begunAs(
  options: Pick<QueryOptions, "integers" | "types"> | undefined,
  readAs: ReadAs,
  begin: (types: number) => number,
): Begun {
  const integers = integersOf(options?.integers, readAs.integers);
  const types = typesOf(options?.types, readAs.types, true);
  const isOwn = typeof options?.types === "object";
  try {
    const handle = begin(types);
    return { handle, integers, types, isOwn: isOwn && handle !== FAILED };
  } catch (error) {
    letGo(options?.types, types);
    throw error;
  }
}

export abstract class Parts<T> implements AsyncIterableIterator<T> {
  private handle = -1;
  private begun: Begun | undefined;
  private isOver = false;
  private readonly steps = new InOrder();
  private failure: { error: unknown } | undefined;
  private readonly ends: Ends;

  /** @internal */
  constructor(
    begin: () => Begun,
    signal: AbortSignal | undefined,
    /** From its beginning to its end. */
    private readonly trace?: Trace,
  ) {
    // A signal that is none is refused by `begin`.
    this.ends = new Ends(signal);
    try {
      const begun = trace === undefined ? begin() : trace.begin(begin);
      const { handle } = begun;
      if (handle === FAILED) {
        throw new FlatwaterError(native.failure());
      }
      this.handle = handle;
      this.begun = begun;
      unused.register(this, handle, this);
      if (begun.isOwn) {
        unused.register(this, begun.types, this);
      }
    } catch (error) {
      this.failure = { error };
    }
  }

  /** Reads one part; undefined at the end. @internal */
  protected abstract reader(): Reader<T | undefined>;

  /** The next part. Several may be awaited: they come one after the other. */
  next(): Promise<IteratorResult<T, undefined>> {
    return this.steps.add(() => this.step());
  }

  private async step(): Promise<IteratorResult<T, undefined>> {
    if (!this.isOver) {
      try {
        if (this.failure !== undefined) {
          throw this.failure.error;
        }
        this.ends.throwIfAborted();
        const reader = this.reader();
        const { integers, types } = this.begun!;
        const answer = native.next(this.handle, integers, place(), types);
        const part = await settle(answer, reader, this.ends, this.trace);
        const due = dueTurn();
        if (due !== undefined) {
          await due;
        }
        if (part !== undefined && !this.isOver) {
          return { done: false, value: part };
        }
      } catch (error) {
        if (!this.isOver) {
          this.close({ error });
          throw error;
        }
      }
      this.close();
    }
    return { done: true, value: undefined };
  }

  /** Ends it, and lets go of what it holds. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** Gives up the part that is awaited, with this error. @internal */
  protected giveUp(reason: unknown): void {
    this.ends.giveUp(reason);
  }

  /** @internal */
  protected close(failure?: { error: unknown }): void {
    if (!this.isOver) {
      this.isOver = true;
      this.ends.end();
      unused.unregister(this);
      native.release(this.handle);
      if (this.begun?.isOwn) {
        native.release(this.begun.types);
      }
      this.trace?.hear();
      if (failure === undefined) {
        this.trace?.ended();
      } else {
        this.trace?.failed(failure.error);
      }
    }
  }
}
