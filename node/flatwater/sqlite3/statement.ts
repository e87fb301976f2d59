/**
 * A statement of node-sqlite3.
 *
 * Owns: what is bound, and its rows that were not taken yet. Invariant: rows are all read when it runs, and handed out one by one. Leaves
 * out: the order of its calls (`work`), and when the database lets the first begin (`core`).
 */

import { AsyncResource } from "node:async_hooks";
import { EventEmitter } from "node:events";
import type { SqlValue } from "../values/sql.js";
import { ERROR, OK } from "./constants.js";
import { coreOf, type Core, type Row } from "./core.js";
import { DONE, failureOf, NO_STATEMENT, ROW, tell, type Callback } from "./failures.js";
import { deliver, mapOf } from "./rows.js";
import type { StatementAll, StatementBind, StatementEach, StatementGet, StatementRun } from "./types.js";
import { bind, clear, given, optional, textOf, type Parameter, type Text } from "./values.js";
import { Works } from "./work.js";

/** The statement that is being made is run once: its first call compiles it. */
let isOnce = false;

/** Makes a statement that is run once. */
export function once<D extends EventEmitter>(database: D, sql: unknown, callback: Callback | undefined): Statement<D> {
  isOnce = true;
  try {
    return new Statement(database, sql as string, callback);
  } finally {
    isOnce = false;
  }
}

/** What keeps a database from being closed. */
interface Held {
  core: Core;
  isHeld: boolean;
}

function letGo(held: Held): void {
  if (held.isHeld) {
    held.isHeld = false;
    held.core.unfinished--;
  }
}

const unfinished = new FinalizationRegistry(letGo);

/** A statement that was compiled, or will be when its turn comes. */
export class Statement<D extends EventEmitter = EventEmitter> extends EventEmitter {
  /** The text, as it was given. */
  declare readonly sql: string;
  /** The rowid of the last row that was inserted on the connection, after a `run`. */
  declare lastID: number;
  /** How many rows the last change of the connection has changed, after a `run`. */
  declare changes: number;

  readonly #core: Core;
  readonly #database: D;
  readonly #works: Works;
  readonly #isOnce = isOnce;
  readonly #held: Held;
  #text: Text | undefined;
  readonly #values: SqlValue[] = [];
  /** What it has returned, and which of it comes next. */
  #rows: Row[] | undefined;
  #at = 0;

  constructor(database: D, sql: string, callback?: (this: Statement<D>, error: Error | null) => void) {
    super();
    const core = coreOf(database);
    if (core === undefined) {
      throw new TypeError("Database object expected");
    }
    if (typeof sql !== "string") {
      throw new TypeError("SQL query expected");
    }
    if (callback !== undefined && typeof callback !== "function") {
      throw new TypeError("Callback expected");
    }
    [this.#core, this.#database] = [core, database];
    this.#held = { core, isHeld: false };
    Object.defineProperty(this, "sql", { value: sql });
    const where = new AsyncResource("sqlite3.Statement.Prepare");
    const failed = () => this.#failed(where, callback);
    this.#works = new Works(core, this, "Statement", "Statement is already finalized", failed);
    this.#works.where = this.#isOnce ? where : undefined;
    core.schedule(() => void this.#prepare(where, callback), where, callback);
  }

  async #prepare(where: AsyncResource, callback: Callback | undefined): Promise<void> {
    const works = this.#works;
    this.#core.pending++;
    this.#text = textOf(this.sql);
    clear(this.#values, this.#text.names.length);
    const isLeft = this.#isOnce || this.#text.sql === "";
    try {
      await (isLeft ? null : this.#core.prepare(this.#text.sql));
    } catch (error) {
      works.failure = failureOf(error);
      works.fail(where, callback);
      works.finish();
      return works.end();
    }
    works.isReady = true;
    if (!isLeft) {
      this.#held.isHeld = true;
      this.#core.unfinished++;
      unfinished.register(this, this.#held, this);
    }
    tell(where, callback, this, null);
    works.end();
  }

  /** A call has failed: of a statement that cannot be compiled this is told, and nothing else. */
  async #failed(where: AsyncResource, callback: Callback | undefined): Promise<boolean> {
    const { failure } = this.#works;
    this.#rows = undefined;
    const mayBeRefused = this.#isOnce && failure.status === ERROR && this.#text!.sql !== "";
    if (!mayBeRefused || (await this.#core.compiles(this.#text!.sql))) {
      return false;
    }
    this.#works.isReady = false;
    this.#works.fail(where, callback);
    this.#works.finish();
    return true;
  }

  /** Binds parameters, if there are some, and lets the statement begin again. Returns false if they cannot be bound. */
  #bind(parameters: readonly Parameter[]): boolean {
    if (parameters.length === 0) {
      return true;
    }
    this.#rows = undefined;
    this.#works.is(OK);
    this.#works.failure = bind(this.#text!, this.#values, parameters) ?? this.#works.failure;
    return this.#works.status === OK;
  }

  /** Runs it from its beginning. `first` and `asks` as in `core`. */
  async #run(first: boolean, asks: boolean): Promise<Row[]> {
    this.#at = 0;
    this.#rows = undefined;
    if (this.#text!.sql === "") {
      throw NO_STATEMENT;
    }
    const { rows = [] } = await this.#core.run(this.#text!, this.#values, first, asks);
    return rows;
  }

  /** Takes the next row, if there is one. */
  #step(): Row | undefined {
    const row = this.#rows![this.#at++];
    this.#works.is(row === undefined ? DONE : ROW);
    if (row === undefined) {
      this.#rows = undefined;
    }
    return row;
  }

  /** Binds parameters, in the place of those that are bound. */
  declare bind: StatementBind<this>;
  /** Calls back with the next row, or without one behind the last. With parameters it begins again. */
  declare get: StatementGet<this>;
  /** Runs it, and calls back with `lastID` and `changes` set. */
  declare run: StatementRun<this>;
  /** Calls back with all rows. */
  declare all: StatementAll<this>;
  /** Calls back with each row, and then with their number. */
  declare each: StatementEach<this>;
  /** Calls back with an object: from the first column of each row to the second, or to the row if it has more. */
  declare map: (...args: any[]) => this;

  static {
    const methods = {
      bind(this: Statement, ...args: unknown[]) {
        const { parameters, callback } = given(args);
        const works = this.#works;
        works.add("Bind", callback, {
          run: () => void this.#bind(parameters),
          after: (where) => works.tell(where, callback, works.status === OK),
        });
        return this;
      },

      get(this: Statement, ...args: unknown[]) {
        const { parameters, callback } = given(args);
        const works = this.#works;
        let row: Row | undefined;
        const run = async () => {
          if ((works.status !== DONE || parameters.length > 0) && this.#bind(parameters)) {
            this.#rows ??= await this.#run(this.#isOnce, false);
            row = this.#step();
          }
        };
        const after = (where: AsyncResource) =>
          works.tell(
            where,
            callback,
            works.status === ROW || works.status === DONE,
            ...(row === undefined ? [] : [row]),
          );
        works.add("Get", callback, { run, after });
        return this;
      },

      run(this: Statement, ...args: unknown[]) {
        const { parameters, callback } = given(args);
        const works = this.#works;
        let [lastID, changes] = [0, 0];
        const run = async () => {
          if (this.#bind(parameters)) {
            this.#rows = await this.#run(false, true);
            ({ lastID, changes } = this.#core);
            this.#step();
          }
        };
        const after = (where: AsyncResource) => {
          const isDone = works.status === ROW || works.status === DONE;
          if (isDone && callback !== undefined) {
            this.lastID = lastID;
            this.changes = changes;
          }
          works.tell(where, callback, isDone);
        };
        works.add("Run", callback, { run, after });
        return this;
      },

      all(this: Statement, ...args: unknown[]) {
        const { parameters, callback } = given(args);
        const works = this.#works;
        let rows: Row[] = [];
        works.add("All", callback, {
          run: async () => void (rows = await this.#all(parameters)),
          after: (where) => works.tell(where, callback, works.status === DONE, rows),
        });
        return this;
      },

      each(this: Statement, ...args: unknown[]) {
        const last = args.length;
        const hasTwo = last >= 2 && typeof args[last - 1] === "function" && typeof args[last - 2] === "function";
        const completed = hasTwo ? (args[last - 1] as Callback) : undefined;
        const { parameters, callback } = given(args, hasTwo ? last - 1 : last);
        const works = this.#works;
        let rows: Row[] = [];
        const after = async (where: AsyncResource) => {
          if (works.status !== DONE) {
            works.fail(where, callback);
          }
          await deliver(rows, (row) => tell(where, callback, this, null, row));
          tell(where, completed, this, null, rows.length);
        };
        works.add("Each", callback, { run: async () => void (rows = await this.#all(parameters)), after });
        return this;
      },

      map(this: Statement, ...args: unknown[]) {
        const callback = args.pop() as Callback;
        return this.all(...args, (error: Error | null, rows: Row[]) =>
          error ? callback(error) : callback(error, mapOf(rows)),
        );
      },
    };
    Object.assign(Statement.prototype, methods);
  }

  async #all(parameters: readonly Parameter[]): Promise<Row[]> {
    if (!this.#bind(parameters)) {
      return [];
    }
    const rows = await this.#run(false, false);
    this.#works.is(DONE);
    return rows;
  }

  /** Lets it begin again. */
  reset(callback?: (this: this, error: null) => void): this {
    optional(0, callback);
    const run = () => {
      this.#rows = undefined;
      this.#works.is(OK);
    };
    this.#works.add("Reset", callback, { run, after: (where) => tell(where, callback, this, null) });
    return this;
  }

  /** Lets it go, when its earlier calls are done. */
  finalize(callback?: (this: this, error?: Error) => void): D {
    optional(0, callback);
    this.#works.schedule("Finalize", callback, (where) => {
      this.#works.finish();
      this.#rows = undefined;
      unfinished.unregister(this);
      letGo(this.#held);
      tell(where, callback, this);
    });
    return this.#database;
  }
}
