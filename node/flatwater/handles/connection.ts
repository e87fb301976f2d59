/**
 * A connection of one's own.
 *
 * Owns: the handle. Invariant: one that is closed or collected rolls back what is open on it. Leaves out: serving it, which the engine
 * does beside the writer.
 */

import { nothing } from "../calls/calls.js";
import { check, CONNECTION_OPTIONS, switchOf, timeOf } from "../calls/given.js";
import type { ReadAs } from "../calls/types.js";
import { native } from "../native/addon.js";
import { FlatwaterError } from "../native/errors.js";
import { place } from "../native/flow.js";
import { FAILED, settle } from "../native/loop.js";
import type { Origin } from "../native/tracing.js";
import { unused } from "../native/unused.js";
import { Session } from "./session.js";

/** How a connection differs from the database's others. */
export interface ConnectionOptions {
  /** How long a statement waits for the writer, and for locks of other processes, in milliseconds. */
  busyTimeout?: number | undefined;
  foreignKeys?: boolean | undefined;
}

/**
 * A connection that is not shared with anybody: transaction control as text, TEMP objects, ATTACH and PRAGMAs are allowed on it. Its first
 * statement opens it.
 *
 * Statements run one after the other, in the order of their calls. Reads wait for nobody. A write waits for the writer, and keeps it until
 * its transaction is over. `run` takes any one statement; `executeScript` runs statement by statement, and what ran before
 * a failure stays.
 */
export class Connection extends Session {
  /** @internal */
  constructor(database: number, readAs: ReadAs, origin: Origin, options: ConnectionOptions | undefined) {
    check(options, CONNECTION_OPTIONS);
    const foreignKeys = options?.foreignKeys === undefined ? undefined : switchOf(options, "foreignKeys");
    const handle = native.connection(database, timeOf(options, "busyTimeout", -1), foreignKeys, place());
    if (handle === FAILED) {
      throw new FlatwaterError(native.failure());
    }
    super(handle, readAs, origin);
    unused.register(this, handle, this);
  }

  /** True while a transaction is open. */
  get inTransaction(): boolean {
    return native.inTransaction(this.handle);
  }

  /** How many rows INSERT, UPDATE and DELETE have changed on this connection. */
  get totalChanges(): number {
    return native.totalChanges(this.handle);
  }

  /** Interrupts the statement that runs now, or waits for the writer: it fails with kind `cancelled`. */
  interrupt(): void {
    native.interrupt(this.handle);
  }

  /** Closes it when its earlier statements are done, and rolls back what is open on it. It may be called more than once. */
  close(): Promise<void> {
    unused.unregister(this);
    const { handle } = this;
    this.handle = -1;
    return settle(native.closeConnection(handle), nothing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** @internal */
  protected override get isInside(): boolean {
    return this.inTransaction;
  }
}
