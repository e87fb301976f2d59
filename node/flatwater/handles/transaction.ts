/**
 * Transactions.
 *
 * Owns: beginning and ending one, and the transaction that a function gets. Invariants: that commits if the function's promise is
 * fulfilled, and rolls back otherwise; afterwards it refuses every call. Leaves out: waiting for the writer, which the engine does.
 */

import { nothing, number, type CallOptions } from "../calls/calls.js";
import { CALL_OPTIONS, check } from "../calls/given.js";
import { native } from "../native/addon.js";
import { misuse } from "../native/errors.js";
import { inside } from "../native/flow.js";
import { settle } from "../native/loop.js";
import { isTraced, type Origin } from "../native/tracing.js";
import { unused } from "../native/unused.js";
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
    return transact(this, body, options);
  }

  /** @internal */
  protected override get isInside(): boolean {
    return true;
  }

  /** @internal */
  constructor(handle: number, integers: number, origin: Origin) {
    super(handle, integers, origin);
    unused.register(this, handle, this);
  }

  /** The number, which it has no longer. @internal */
  take(): number {
    unused.unregister(this);
    const { handle } = this;
    this.handle = -1;
    return handle;
  }
}

/** Begins a transaction on a database; on a transaction a nested one. */
export async function begin(on: Session, options?: CallOptions): Promise<Transaction> {
  const handle = await on["perform"](BEGIN, "", undefined, options, number);
  return new Transaction(handle, on["integers"], on["origin"]);
}

/** Ends it. Afterwards it refuses every call. A rollback that fails is none: the engine replaces the connection, which rolls back too. */
export async function end(tx: Transaction, commits: boolean): Promise<void> {
  const trace = isTraced() ? tx["trace"](commits ? "commit" : "rollback", undefined) : undefined;
  const call = () => settle(native.end(tx.take(), commits, -1), nothing, undefined, trace);
  const ended = trace === undefined ? call() : trace.around(call);
  await (commits ? ended : ended.catch(() => {}));
}

/** Begins a transaction, runs the function in it, and ends it. */
export async function transact<T>(
  on: Session,
  body: (tx: Transaction) => Promise<T> | T,
  options: CallOptions | undefined,
): Promise<T> {
  if (typeof body !== "function") {
    throw misuse("a transaction takes a function", "transaction(async (tx) => { ... }, options)");
  }
  check(options, CALL_OPTIONS);
  const tx = await begin(on, options);
  return inside(tx["handle"], async (here) => {
    let result: T;
    try {
      result = await body(tx);
    } catch (error) {
      here.handle = -1;
      // The error of the function says more than one of the rollback.
      await end(tx, false);
      throw error;
    }
    here.handle = -1;
    await end(tx, true);
    return result;
  });
}
