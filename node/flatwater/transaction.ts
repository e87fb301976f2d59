/**
 * Transactions.
 *
 * Owns: the transaction that a function gets, and its end. Invariants: it commits if the function's promise is fulfilled, and rolls back
 * otherwise; afterwards it refuses every call. Leaves out: waiting for the writer, which the engine does.
 */

import { native } from "./addon.js";
import { nothing, number, throwIfAborted, timeoutOf, type CallOptions } from "./calls.js";
import { inside, place } from "./flow.js";
import { settle } from "./loop.js";
import { Session } from "./session.js";

const BEGIN = 10;

/** An open transaction. It belongs to the function that it was passed to. */
export class Transaction extends Session {
  /** True until it is over: a deadline, an idle limit and `OR ROLLBACK` end it too. */
  get inTransaction(): boolean {
    return native.inTransaction(this.handle);
  }

  /** Runs a function in a nested transaction, which is a savepoint. */
  transaction<T>(body: (tx: Transaction) => Promise<T> | T, options?: CallOptions): Promise<T> {
    return transact(this.handle, this.integers, body, options);
  }

  /** @internal */
  constructor(handle: number, integers: number) {
    super(handle, integers);
    unused.register(this, handle, this);
  }

  /** @internal */
  over(): void {
    unused.unregister(this);
    this.handle = -1;
  }
}

/** What was dropped before its function ended. */
const unused = new FinalizationRegistry<number>((handle) => native.release(handle));

/** Begins a transaction on a target, runs the function in it, and ends it. */
export async function transact<T>(
  target: number,
  integers: number,
  body: (tx: Transaction) => Promise<T> | T,
  options: CallOptions | undefined,
): Promise<T> {
  throwIfAborted(options);
  const timeout = timeoutOf(options);
  const handle = await settle(native.run(BEGIN, target, "", undefined, timeout, place(), 0), number, options?.signal);
  const tx = new Transaction(handle, integers);
  return inside(handle, async (here) => {
    let result: T;
    try {
      result = await body(tx);
    } catch (error) {
      here.handle = -1;
      tx.over();
      await rollBack(handle);
      throw error;
    }
    here.handle = -1;
    tx.over();
    await settle(native.end(handle, true, -1), nothing);
    return result;
  });
}

/** Rolls back. If that fails, the engine has replaced the connection, which rolls back too. */
async function rollBack(handle: number): Promise<void> {
  try {
    await settle(native.end(handle, false, -1), nothing);
  } catch {
    // The error of the function says more.
  }
}
