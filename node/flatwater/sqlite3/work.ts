/**
 * The calls of one statement, or of one backup.
 *
 * Owns: their order, and what the last one came to. Invariants: they run one after the other; what waits behind a call goes on in the same
 * turn as its callback; after the end all are refused. Leaves out: what they do, and when the database lets the first begin (`core`).
 */

import { AsyncResource } from "node:async_hooks";
import { OK } from "./constants.js";
import type { Core } from "./core.js";
import { emit, errorOf, failureOf, tell, type Callback, type Emits, type Failure } from "./failures.js";
import { Line } from "./line.js";

/** What a call does, and what follows. */
export interface Work {
  run(): Promise<void> | void;
  after(where: AsyncResource): Promise<void> | void;
}

export class Works {
  /** It can be used. */
  isReady = false;
  isLocked = false;
  isFinished = false;
  failure: Failure = { status: OK, message: "" };
  /** Where all callbacks are called. Undefined: each has a place of its own. */
  where: AsyncResource | undefined;
  private readonly line = new Line();

  constructor(
    readonly core: Core,
    private readonly self: object,
    private readonly kind: string,
    private readonly late: string,
    /** Called after a failure: true if it has ended everything. */
    private readonly failed: () => Promise<boolean> = () => Promise.resolve(false),
  ) {}

  get status(): number {
    return this.failure.status;
  }

  /** How many calls wait. */
  get length(): number {
    return this.line.length;
  }

  /** Notes what the last call came to. As there, the text of an earlier error stays. */
  is(status: number): void {
    this.failure = { status, message: this.failure.message };
  }

  /** Begins a call now, or when those before it are done. */
  schedule(name: string, callback: Callback | undefined, begin: (where: AsyncResource) => void): void {
    const where = this.where ?? new AsyncResource(`sqlite3.${this.kind}.${name}`);
    if (this.isFinished || !this.isReady || this.isLocked || this.line.length > 0) {
      this.line.push({ begin: () => begin(where), callback, where });
      this.clean();
    } else {
      begin(where);
    }
  }

  /** The same for work that others wait for. */
  add(name: string, callback: Callback | undefined, work: Work): void {
    this.schedule(name, callback, (where) => {
      this.isLocked = true;
      this.core.pending++;
      void this.run(where, work);
    });
  }

  private async run(where: AsyncResource, work: Work): Promise<void> {
    try {
      await work.run();
    } catch (error) {
      this.failure = failureOf(error);
      if (await this.failed()) {
        return this.end();
      }
    }
    const told = work.after(where);
    if (told !== undefined) {
      await told;
    }
    this.end();
  }

  /** A call is over: goes on with what waits. */
  end(): void {
    this.isLocked = false;
    this.core.pending--;
    while (this.isReady && !this.isLocked && !this.isFinished && this.line.length > 0) {
      this.line.take().begin();
    }
    this.clean();
    this.core.process();
  }

  /** Calls back with the error of the last call, or emits it. */
  fail(where: AsyncResource, callback: Callback | undefined): void {
    const error = errorOf(this.failure);
    if (callback !== undefined) {
      tell(where, callback, this.self, error);
    } else {
      where.runInAsyncScope(emit, null, this.self as Emits, "error", error);
    }
  }

  /** Calls back without an error if the last call had one of these results, and with it otherwise. */
  tell(where: AsyncResource, callback: Callback | undefined, isDone: boolean, ...given: unknown[]): void {
    isDone ? tell(where, callback, this.self, null, ...given) : this.fail(where, callback);
  }

  /** Nothing is done any more. */
  finish(): void {
    this.isFinished = true;
    this.clean();
  }

  /** Refuses what waits after the end. If it could never be used, that was told already. */
  private clean(): void {
    if (this.isFinished) {
      this.isReady ? this.line.refuse(this.late, this.self as Emits) : this.line.clear();
    }
  }
}
