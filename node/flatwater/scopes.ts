/**
 * Transactions of a library whose beginning and end are calls of their own, with savepoints by name.
 *
 * Owns: what is open on one of its connections. Invariants: they end from the innermost on; an end without what it would end does
 * nothing. Leaves out: running statements, for which the innermost is the place.
 */

import { Snapshot, type Database } from "./database.js";
import { misuse } from "./errors.js";
import { enter, type Place } from "./flow.js";
import { begin, end, type Transaction } from "./transaction.js";

/** Of a savepoint its name. */
type Name = string | symbol;

interface Scope {
  name: Name;
  session: Transaction | Snapshot;
  place: Place | undefined;
}

export class Scopes {
  /** From the outermost to the innermost. */
  private readonly open: Scope[] = [];
  /** False if none was ever begun. */
  wereUsed = false;

  /** `isNoted`: the code that begins a transaction is in it, so a call of it on the database is refused. */
  constructor(
    private readonly database: Database,
    private readonly isNoted: boolean,
  ) {}

  /** Undefined if nothing is open. */
  get innermost(): Transaction | Snapshot | undefined {
    return this.open.at(-1)?.session;
  }

  /** False if nothing is open, and if something else has ended it: a deadline, the idle limit, `OR ROLLBACK`. */
  get isOpen(): boolean {
    const { innermost } = this;
    return innermost !== undefined && (innermost instanceof Snapshot || innermost.inTransaction);
  }

  has(name: Name): boolean {
    return this.open.some((scope) => scope.name === name);
  }

  /** Begins a transaction, or in one a nested one. It notes the place before it waits, so that the caller's code is inside. */
  async begin(name: Name, isReadOnly = false): Promise<void> {
    this.wereUsed = true;
    const around = this.innermost;
    if (around instanceof Snapshot) {
      throw misuse("a read-only transaction has no savepoints");
    }
    if (isReadOnly && around === undefined) {
      this.open.push({ name, session: await this.database.snapshot(), place: undefined });
      return;
    }
    const place = around === undefined && this.isNoted ? enter() : undefined;
    const outer = around ?? this.database;
    const session = await begin(outer);
    if (place !== undefined) {
      place.handle = session["handle"];
    }
    this.open.push({ name, session, place });
  }

  /** Ends what is open from the last of this name on. There is none after a commit that failed. */
  async end(name: Name, commits: boolean): Promise<void> {
    const from = this.open.findLastIndex((scope) => scope.name === name);
    if (from >= 0) {
      await this.endFrom(from, commits);
    }
  }

  /** As in SQLite the savepoint itself stays. */
  async rollbackTo(name: Name): Promise<void> {
    await this.end(name, false);
    await this.begin(name);
  }

  /** Ends what is open from this position on, the innermost first. */
  async endFrom(from: number, commits: boolean): Promise<void> {
    for (const { session, place } of this.open.splice(from).reverse()) {
      if (place !== undefined) {
        place.handle = -1;
      }
      if (session instanceof Snapshot) {
        session.close();
      } else {
        await end(session, commits);
      }
    }
  }
}
