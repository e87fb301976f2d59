/**
 * A transaction for the migrations of another library, whose statements come one by one.
 *
 * Owns: its connection, and the savepoints in it. Invariants: foreign keys are off from before its begin until after its end, because a
 * table that is rebuilt is dropped, which would delete what refers to it; it commits no violation that was not there before it, as the
 * engine's own migrations; once it is over, nothing runs in its place. Leaves out: what is applied.
 */

import { refused, textOf, type CallOptions, type QueryOptions, type Statement } from "../calls/calls.js";
import { native } from "../native/addon.js";
import { codeOf, FlatwaterError, misuse } from "../native/errors.js";
import { place } from "../native/flow.js";
import type { Reader } from "../native/loop.js";
import type { Params } from "../values/sql.js";
import type { Database } from "./database.js";
import { Session } from "./session.js";

/** What the connection would take as text, and the program is to leave out. */
const CONTROL = new Set(["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"]);

/** What all on one connection know. */
interface Shared {
  /** The error of the statement that ended the transaction, or was told that something else has: the idle limit. */
  failure: Error | undefined;
  /** A call is its own. */
  isControl: boolean;
}

/** How often each row has no parent: by its table, its rowid and the table of the parent. */
type Violations = Map<string, number>;

export class Migrating extends Session {
  private enforces = false;
  private before: Violations | undefined;

  private constructor(
    private readonly database: Database,
    handle: number,
    /** How many transactions are around it. */
    private readonly depth: number,
    private readonly shared: Shared,
  ) {
    super(handle, database["readAs"], database["origin"]);
  }

  /** Its number, inside of which other calls on the database are refused: they would wait for it. */
  get number(): number {
    return this.handle;
  }

  static async begin(database: Database): Promise<Migrating> {
    const handle = native.connection(database["handle"], -1, undefined, place());
    const own = new Migrating(database, handle, 0, { failure: undefined, isControl: false });
    try {
      own.enforces = (await own.queryValue("PRAGMA foreign_keys")) === 1;
      await own.control("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
      if (database.stats().oneConnection) {
        own.before = await violations(own);
      }
    } catch (error) {
      await own.close();
      throw error;
    }
    return own;
  }

  /** Begins a savepoint. */
  async savepoint(): Promise<Migrating> {
    const inner = new Migrating(this.database, this.handle, this.depth + 1, this.shared);
    await this.control(`SAVEPOINT ${inner.name}`);
    return inner;
  }

  /** Commits or rolls back; of a savepoint keeps or undoes what was done in it. */
  async end(commits: boolean): Promise<void> {
    if (this.depth > 0) {
      await this.control(`${commits ? "" : `ROLLBACK TO ${this.name}; `}RELEASE ${this.name}`);
      return;
    }
    try {
      if (commits) {
        await this.refuseNewViolations();
        await this.control(`COMMIT; ${this.keys}`);
      }
    } finally {
      await this.close();
    }
  }

  /** @internal */
  protected override perform<T>(
    operation: number,
    statement: Statement,
    params: Params | undefined,
    options: CallOptions | undefined,
    reader: Reader<T>,
    query?: QueryOptions,
  ): Promise<T> {
    const { shared } = this;
    const { isControl } = shared;
    if (shared.failure !== undefined) {
      return refused(misuse(`the transaction is over: ${shared.failure.message}`, undefined, "lost"));
    }
    const [, verb = ""] = (isControl ? [] : native.statements(textOf(statement)))[0] ?? [];
    if (CONTROL.has(verb)) {
      return refused(
        misuse(`${verb} as text in migrations, which are one transaction`, "leave it out", "invalid_migration"),
      );
    }
    return super.perform(operation, statement, params, options, reader, query).catch((error: unknown) => {
      if (!isControl && !native.inTransaction(this.handle) && error instanceof Error) {
        shared.failure = error;
      }
      throw error;
    });
  }

  /** Runs a script of its own. */
  private control(script: string): Promise<void> {
    this.shared.isControl = true;
    try {
      return this.executeScript(script);
    } finally {
      this.shared.isControl = false;
    }
  }

  private get name(): string {
    return `flatwater_${this.depth}`;
  }

  /** What was there before is asked only if something is found: it reads all rows. Other connections still see the state before. */
  private async refuseNewViolations(): Promise<void> {
    const after: Violations = this.enforces ? await violations(this) : new Map();
    if (after.size === 0) {
      return;
    }
    const before = this.before ?? (await violations(this.database));
    const added = [...after].filter(([key, count]) => count > (before.get(key) ?? 0)).map(([key]) => key);
    if (added.length > 0) {
      throw new FlatwaterError({
        message: `the migrations add ${added.length} foreign key violations; the first: ${added[0]}`,
        kind: "constraint",
        code: codeOf("foreign_key_check"),
        constraint: { kind: "foreign_key", table: undefined, columns: [], name: undefined },
        hint: "foreign keys, CASCADE included, are off while migrations run",
      });
    }
  }

  private get keys(): string {
    return `PRAGMA foreign_keys = ${this.enforces ? "ON" : "OFF"}`;
  }

  /** A database in memory has no other connection, and what is set on it stays. After a commit there is nothing to roll back. */
  private async close(): Promise<void> {
    this.shared.failure = undefined;
    await this.control("ROLLBACK").catch(() => {});
    await this.control(this.keys).catch(() => {});
    native.release(this.handle);
    this.handle = -1;
  }
}

async function violations(on: Session): Promise<Violations> {
  const found: Violations = new Map();
  const rows = await on
    .query<{ table: string; rowid: number | null; parent: string }>("PRAGMA main.foreign_key_check", [], {
      integers: "auto",
      rows: "object",
    })
    .catch((error: unknown) => {
      // A foreign key that does not fit its parent.
      if (error instanceof FlatwaterError && error.kind === "sql") {
        return [{ table: error.message, rowid: null, parent: "" }];
      }
      throw error;
    });
  for (const { table, rowid, parent } of rows) {
    const key = `table ${table}${rowid === null ? "" : `, rowid ${rowid}`}, parent ${parent}`;
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  return found;
}
