/**
 * A transaction for the migrations of another library, whose statements come one by one.
 *
 * Owns: its connection, and the savepoints in it. Invariants: foreign keys are off from before its begin until after its end, because a
 * table that is rebuilt is dropped, which would delete what refers to it; it commits no violation that was not there before it, as the
 * engine's own migrations. Leaves out: what is applied.
 */

import { native } from "./addon.js";
import type { Database } from "./database.js";
import { FlatwaterError } from "./errors.js";
import { place } from "./flow.js";
import { Session } from "./session.js";

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
  ) {
    super(handle, database["integers"], database["origin"]);
  }

  /** Its number, inside of which other calls on the database are refused: they would wait for it. */
  get number(): number {
    return this.handle;
  }

  static async begin(database: Database): Promise<Migrating> {
    const own = new Migrating(database, native.connection(database["handle"], place()), 0);
    try {
      own.enforces = (await own.queryValue("PRAGMA foreign_keys")) === 1;
      await own.executeScript("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE");
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
    const inner = new Migrating(this.database, this.handle, this.depth + 1);
    await this.execute(`SAVEPOINT ${inner.name}`);
    return inner;
  }

  /** Commits or rolls back; of a savepoint keeps or undoes what was done in it. */
  async end(commits: boolean): Promise<void> {
    if (this.depth > 0) {
      await this.executeScript(`${commits ? "" : `ROLLBACK TO ${this.name}; `}RELEASE ${this.name}`);
      return;
    }
    try {
      if (commits) {
        await this.refuseNewViolations();
        await this.executeScript(`COMMIT; ${this.keys}`);
      }
    } finally {
      await this.close();
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
        hint: "foreign keys, CASCADE included, are off while migrations run",
      });
    }
  }

  private get keys(): string {
    return `PRAGMA foreign_keys = ${this.enforces ? "ON" : "OFF"}`;
  }

  /** A database in memory has no other connection, and what is set on it stays. After a commit there is nothing to roll back. */
  private async close(): Promise<void> {
    await this.execute("ROLLBACK").catch(() => {});
    await this.execute(this.keys).catch(() => {});
    native.release(this.handle);
    this.handle = -1;
  }
}

async function violations(on: Session): Promise<Violations> {
  const found: Violations = new Map();
  const rows = await on
    .query<{ table: string; rowid: number | null; parent: string }>("PRAGMA main.foreign_key_check", [], {
      integers: "auto",
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
