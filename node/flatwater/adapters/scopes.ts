/**
 * Transactions of a library whose beginning and end are calls of their own, with savepoints by name.
 *
 * Owns: what is open on one of its connections. Invariants: they end from the innermost on, and all that were to end do, whatever fails; an
 * end without what it would end does nothing. Leaves out: running statements, for which the innermost is the place.
 */

import type { Database } from "../handles/database.js";
import { Snapshot } from "../handles/snapshot.js";
import { Migrating } from "../handles/migrating.js";
import { begin, end, type Transaction } from "../handles/transaction.js";
import { misuse } from "../native/errors.js";
import { enter, type Place } from "../native/flow.js";

/** Of a savepoint its name. */
type Name = string | symbol;

interface Scope {
  name: Name;
  session: Transaction | Snapshot | Migrating;
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
  get innermost(): Transaction | Snapshot | Migrating | undefined {
    return this.open.at(-1)?.session;
  }

  /** False if nothing is open, and if something else has ended it: a deadline, the idle limit, `OR ROLLBACK`. */
  get isOpen(): boolean {
    const { innermost } = this;
    return innermost instanceof Snapshot || innermost instanceof Migrating || innermost?.inTransaction === true;
  }

  has(name: Name): boolean {
    return this.open.some((scope) => scope.name === name);
  }

  /** Begins a transaction, or in one a nested one. It notes the place before it waits, so that the caller's code is inside. */
  async begin(name: Name, isReadOnly = false): Promise<void> {
    const around = this.innermost;
    if (around instanceof Snapshot) {
      throw misuse("a read-only transaction has no savepoints");
    }
    this.wereUsed = true;
    // A server has no snapshots.
    if (isReadOnly && around === undefined && !this.database.isServer) {
      this.open.push({ name, session: await this.database.snapshot(), place: undefined });
      return;
    }
    const place = around === undefined && this.isNoted ? enter() : undefined;
    const session = around instanceof Migrating ? await around.savepoint() : await begin(around ?? this.database);
    if (place !== undefined) {
      place.handle = session["handle"];
    }
    this.open.push({ name, session, place });
  }

  /** Begins a transaction for migrations. One that is open is of no use to them, and was not used: it takes its place. */
  async beginMigrating(name: Name): Promise<void> {
    this.wereUsed = true;
    const [empty] = this.open;
    const place = empty === undefined ? enter() : empty.place;
    if (empty !== undefined) {
      await this.endFrom(0, false);
    }
    // A server enforces foreign keys as it was started.
    const session = this.database.isServer ? await begin(this.database) : await Migrating.begin(this.database);
    if (place !== undefined) {
      place.handle = session instanceof Migrating ? session.number : session["handle"];
    }
    this.open.push({ name: empty?.name ?? name, session, place });
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

  /** Ends what is open from this position on, the innermost first. After one that could not be committed, those around it roll back. */
  async endFrom(from: number, commits: boolean): Promise<void> {
    const failed: unknown[] = [];
    for (const { session, place } of this.open.splice(from).reverse()) {
      if (place !== undefined) {
        place.handle = -1;
      }
      await ended(session, commits && failed.length === 0).catch((error: unknown) => failed.push(error));
    }
    if (failed.length > 0) {
      throw failed[0];
    }
  }
}

async function ended(session: Scope["session"], commits: boolean): Promise<void> {
  if (session instanceof Snapshot) {
    session.close();
  } else if (session instanceof Migrating) {
    await session.end(commits);
  } else {
    await end(session, commits);
  }
}
