/**
 * Transactions.
 *
 * Owns: beginning and ending one, the transaction that a function gets, and the one that its caller ends. Invariants: the first commits if
 * the function's promise is fulfilled, and rolls back otherwise; the second rolls back if it is disposed of or collected; once it is over
 * it refuses every call. Leaves out: waiting for the writer, which the engine does.
 */

import { nothing, number, timeoutOf, type CallOptions } from "../calls/calls.js";
import { CALL_OPTIONS, check } from "../calls/given.js";
import type { ReadAs } from "../calls/types.js";
import { native } from "../native/addon.js";
import { misuse, whole } from "../native/errors.js";
import { enter, inside, place, type Place } from "../native/flow.js";
import { settle } from "../native/loop.js";
import { isTraced, type Origin } from "../native/tracing.js";
import { unused } from "../native/unused.js";
import { Session } from "./session.js";

const BEGIN = 10;

/** What is done with a savepoint. */
const STEPS = { savepoint: 0, release: 1, rollbackTo: 2 };

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

  /** Begins a nested transaction. Until it ends, calls of the same async function on this one run in it. */
  begin(options?: CallOptions): Promise<BegunTransaction> {
    return beginHere(this, options);
  }

  /**
   * Rolls it back before its function returns, which then ends nothing. It succeeds if SQLite, the idle limit or a close has rolled it
   * back already.
   */
  rollback(): Promise<void> {
    return end(this, false);
  }

  /**
   * Opens a savepoint, to which `rollbackTo` returns. They form a stack; a name may be used again, and is then that of the newest one. A
   * nested transaction has names of its own.
   */
  savepoint(name: string, options?: CallOptions): Promise<void> {
    return this.step("savepoint", name, options);
  }

  /** Closes the savepoint of this name and those after it, and keeps their changes. The transaction stays open. */
  release(name: string, options?: CallOptions): Promise<void> {
    return this.step("release", name, options);
  }

  /** Undoes all changes since the savepoint of this name, which stays open. Those after it are closed. */
  rollbackTo(name: string, options?: CallOptions): Promise<void> {
    return this.step("rollbackTo", name, options);
  }

  private step(step: keyof typeof STEPS, name: string, options: CallOptions | undefined): Promise<void> {
    return this.attempt(step, undefined, options, CALL_OPTIONS, nothing, () => {
      if (typeof name !== "string") {
        throw misuse("the name of a savepoint must be a string");
      }
      return native.savepoint(this.handle, STEPS[step], whole(name, "the name"), timeoutOf(options), place());
    });
  }

  /** @internal */
  protected override get isInside(): boolean {
    return true;
  }

  /** @internal */
  constructor(handle: number, readAs: ReadAs, origin: Origin) {
    super(handle, readAs, origin);
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

/** A transaction that its caller ends. One that is collected is rolled back, and so is one that is not used for `transactionIdle`. */
export class BegunTransaction extends Transaction {
  /** @internal */
  constructor(
    handle: number,
    readAs: ReadAs,
    origin: Origin,
    private readonly place: Place,
  ) {
    super(handle, readAs, origin);
    place.handle = handle;
  }

  /**
   * Commits it, or keeps the changes of a nested one. A nested one that is still open in it is undone. If this fails nothing is kept,
   * unless the kind of the error is `commit_unknown`.
   */
  async commit(options?: CallOptions): Promise<void> {
    check(options, CALL_OPTIONS);
    await end(this, true, options);
  }

  /** Rolls it back. It succeeds if it is over already. */
  override async rollback(): Promise<void> {
    await end(this, false);
  }

  /** Rolls it back, unless it is over. */
  async [Symbol.asyncDispose](): Promise<void> {
    await end(this, false);
  }

  /** @internal */
  override take(): number {
    this.place.handle = -1;
    return super.take();
  }
}

/** Begins a transaction on a database; on a transaction a nested one. */
export async function begin(on: Session, options?: CallOptions): Promise<Transaction> {
  const handle = await on["perform"](BEGIN, "", undefined, options, number);
  return new Transaction(handle, on["readAs"], on["origin"]);
}

/** The same for a caller who ends it. The code that awaits it is inside: its calls on the database would wait for it. */
export async function beginHere(on: Session, options?: CallOptions): Promise<BegunTransaction> {
  const here = enter();
  try {
    const handle = await on["perform"](BEGIN, "", undefined, options, number);
    return new BegunTransaction(handle, on["readAs"], on["origin"], here);
  } catch (error) {
    here.handle = -1;
    throw error;
  }
}

/**
 * Ends it. Afterwards it refuses every call. A rollback that fails is none: the engine replaces the connection, which rolls back too; and
 * there is none of what is over.
 */
export async function end(tx: Transaction, commits: boolean, options?: CallOptions): Promise<void> {
  if (!commits && tx["handle"] < 0) {
    return;
  }
  const trace = isTraced() ? tx["trace"](commits ? "commit" : "rollback", undefined) : undefined;
  const timeout = timeoutOf(options);
  const call = () => settle(native.end(tx.take(), commits, timeout), nothing, options?.signal, trace);
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
    // It may have rolled back.
    if (tx["handle"] >= 0) {
      await end(tx, true);
    }
    return result;
  });
}
