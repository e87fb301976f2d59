/**
 * A database of node-sqlite3: one connection.
 *
 * Owns: its calls. Invariants: a call begins when its turn comes and never waits in the call itself; what is refused before that is thrown,
 * as there. Leaves out: the order (`core`), and statements (`statement`).
 */

import { AsyncResource } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { Backup } from "./backup.js";
import { BUSY, OK, OPEN_CREATE, OPEN_FULLMUTEX, OPEN_READWRITE } from "./constants.js";
import { Core, CORE, TELLS } from "./core.js";
import { errorOf, failureOf, tell, type Callback, type Failure } from "./failures.js";
import { Place } from "./place.js";
import { optionOf } from "./settings.js";
import { once, Statement } from "./statement.js";
import type { DatabaseAll, DatabaseEach, DatabaseGet, DatabasePrepare, DatabaseRun } from "./types.js";
import { optional } from "./values.js";

export type Done<T = Database> = (this: T, error: Error | null) => void;

/** What follows the name of the file. */
export type Rest = [callback?: Done] | [mode?: number | undefined, callback?: Done];

export class Database extends EventEmitter {
  /** As it was given. */
  declare readonly filename: string;
  /** The flags with which it was opened. */
  declare readonly mode: number;
  /** @internal */
  declare readonly [CORE]: Core;

  constructor(filename: string, ...given: Rest) {
    super();
    if (typeof filename !== "string") {
      throw new TypeError("String expected");
    }
    const hasMode = typeof given[0] === "number" && given[0] === (given[0] | 0);
    const mode = hasMode ? (given[0] as number) : OPEN_READWRITE | OPEN_CREATE | OPEN_FULLMUTEX;
    const callback = given.find((one, at) => typeof one === "function" && at <= (hasMode ? 1 : 0)) as Done | undefined;
    Object.defineProperty(this, "filename", { value: filename });
    Object.defineProperty(this, "mode", { value: mode });
    const where = new AsyncResource("sqlite3.Database.Open");
    let place: Place | undefined;
    let failure: Failure | undefined;
    try {
      place = new Place(filename, mode);
    } catch (error) {
      failure = error as Failure;
    }
    const core = new Core(this, place);
    Object.defineProperty(this, CORE, { value: core });
    const opening = failure === undefined ? place!.open([]) : Promise.reject(failure);
    opening.then(
      (connection) => {
        core.connection = connection;
        core.isOpen = true;
        tell(where, callback, this, null);
        core.emit("open");
        core.process();
      },
      (why: Failure) => {
        const error = errorOf(why);
        callback === undefined ? core.emit("error", error) : tell(where, callback, this, error);
      },
    );
  }

  /** True once it is open, until it is closed. */
  get open(): boolean {
    return this[CORE].isOpen;
  }

  /** Begins work that nothing runs beside, and calls back with what came of it. */
  #alone(name: string, callback: Callback | undefined, work: () => Promise<void>, after?: () => void): this {
    const where = new AsyncResource(`sqlite3.Database.${name}`);
    const core = this[CORE];
    const begin = () => {
      core.pending++;
      work().then(
        () => {
          core.pending--;
          tell(where, callback, this, null);
          after?.();
          core.process();
        },
        (error: unknown) => {
          core.pending--;
          const told = errorOf(failureOf(error));
          callback === undefined ? core.emit("error", told) : tell(where, callback, this, told);
          core.process();
        },
      );
    };
    core.schedule(begin, where, callback, true);
    return this;
  }

  /** Runs the statements of a text one after the other. If one fails, those before it stay. */
  exec(sql: string, callback?: Done): this {
    if (typeof sql !== "string") {
      throw new TypeError("Argument 0 must be a string");
    }
    optional(1, callback);
    const end = sql.indexOf("\0");
    return this.#alone("Exec", callback, () => this[CORE].exec((end < 0 ? sql : sql.slice(0, end)).toWellFormed()));
  }

  /** Calls back when everything that was called before is done. */
  wait(callback?: (this: Database, error: null) => void): this {
    optional(0, callback);
    const where = new AsyncResource("sqlite3.Database.Wait");
    const core = this[CORE];
    const begin = () => {
      tell(where, callback, this, null);
      core.process();
    };
    core.schedule(begin, where, callback, true);
    return this;
  }

  /** Closes it when everything that was called before is done. It fails while a statement is not finalized. */
  close(callback?: Done): this {
    optional(0, callback);
    const where = new AsyncResource("sqlite3.Database.Close");
    const core = this[CORE];
    const begin = () => {
      core.pending++;
      core.isClosing = true;
      void this.#close(core, where, callback);
    };
    core.schedule(begin, where, callback, true);
    return this;
  }

  async #close(core: Core, where: AsyncResource, callback: Callback | undefined): Promise<void> {
    let failure: Failure = { status: OK, message: "" };
    if (core.unfinished > 0) {
      await null;
      failure = { status: BUSY, message: "unable to close due to unfinalized statements or unfinished backups" };
    } else {
      failure = await core.close();
    }
    core.pending--;
    core.isClosing = false;
    if (core.unfinished > 0) {
      const error = errorOf(failure);
      callback === undefined ? core.emit("error", error) : tell(where, callback, this, error);
      return core.process();
    }
    // One that could not be closed well is closed all the same.
    core.isOpen = false;
    tell(where, callback, this, failure.status === OK ? null : errorOf(failure));
    core.emit("close");
    core.process();
  }

  /** Loads an extension. It must be the first thing that is done with the database. */
  loadExtension(path: string, callback?: Done): this {
    if (typeof path !== "string") {
      throw new TypeError("Argument 0 must be a string");
    }
    optional(1, callback);
    return this.#alone("LoadExtension", callback, () => this[CORE].load(path));
  }

  /** Has calls run one after the other: those that the function makes, or all that follow. */
  serialize(callback?: () => void): this {
    return this.#inOrder(true, callback);
  }

  /** Has calls run side by side again. */
  parallelize(callback?: () => void): this {
    return this.#inOrder(false, callback);
  }

  #inOrder(isSerial: boolean, callback: (() => void) | undefined): this {
    optional(0, callback);
    const core = this[CORE];
    const before = core.isSerial;
    core.isSerial = isSerial;
    if (callback !== undefined) {
      try {
        callback.call(this);
      } finally {
        core.isSerial = before;
      }
    }
    core.process();
    return this;
  }

  /** Sets how long locks are waited for, in milliseconds, a limit of SQLite, or whether events are emitted. */
  configure(option: string, ...given: unknown[]): this {
    if (given.length === 0) {
      throw new TypeError("Expected 2arguments");
    }
    return this.#set(optionOf(this[CORE], option, given[0], given[1], given.length), undefined);
  }

  #set(set: () => void, callback: Callback | undefined): this {
    const core = this[CORE];
    const begin = () => {
      set();
      core.process();
    };
    core.schedule(begin, new AsyncResource("sqlite3.Database.Configure"), callback);
    core.process();
    return this;
  }

  /** Ends the statement that runs, which fails with SQLITE_INTERRUPT. */
  interrupt(): this {
    const { isOpen, isClosing, connection } = this[CORE];
    if (!isOpen || isClosing) {
      throw new Error(isOpen ? "Database is closing" : "Database is not open");
    }
    connection.interrupt();
    return this;
  }

  /** Compiles a statement. What follows the text is bound; the last may be a callback. */
  declare prepare: DatabasePrepare<Statement<Database>>;
  /** Runs one statement. */
  declare run: DatabaseRun<this, Statement<Database>>;
  /** Calls back with the first row. */
  declare get: DatabaseGet<this, Statement<Database>>;
  /** Calls back with all rows. */
  declare all: DatabaseAll<this, Statement<Database>>;
  /** Calls back with each row, and then with their number. */
  declare each: DatabaseEach<this, Statement<Database>>;
  /** Calls back with an object: from the first column of each row to the second, or to the row if it has more. */
  declare map: (sql: string, ...params: any[]) => this;

  /** Begins a copy of the database. */
  backup(filename: string, ...given: unknown[]): Backup {
    const isShort = given.length <= 1;
    const [destination, source, isTo, callback] = isShort ? ["main", "main", true, given[0]] : given;
    return new Backup(this, filename, destination as string, source as string, isTo as boolean, callback as Callback);
  }

  override addListener(name: string | symbol, listener: (...args: any[]) => void): this {
    super.addListener(name, listener);
    return this.#listens(name);
  }

  override on(name: string | symbol, listener: (...args: any[]) => void): this {
    return this.addListener(name, listener);
  }

  override removeListener(name: string | symbol, listener: (...args: any[]) => void): this {
    super.removeListener(name, listener);
    return this.#listens(name);
  }

  override off(name: string | symbol, listener: (...args: any[]) => void): this {
    return this.removeListener(name, listener);
  }

  override removeAllListeners(name?: string | symbol): this {
    super.removeAllListeners(name);
    return this.#listens(name);
  }

  /** Has an event noted if somebody listens to it. */
  #listens(name: string | symbol | undefined): this {
    const names = name === undefined ? Object.keys(TELLS) : [name];
    for (const one of names) {
      if (typeof one === "string" && Object.hasOwn(TELLS, one)) {
        const isOn = this.listenerCount(one) > 0;
        // After the close there is nothing to be told.
        this.#set(() => this[CORE].tell(one, isOn), ignored);
      }
    }
    return this;
  }
}

const ignored = () => {};

/** Is told of a text that cannot be compiled, and of nothing else. */
function refusal(callback: unknown): Callback | undefined {
  return typeof callback === "function" ? (error: Error | null) => void (error && callback(error)) : undefined;
}

// Each is a statement that is run once.
for (const name of ["run", "get", "all", "each", "map"] as const) {
  Database.prototype[name] = function (this: Database, sql: string, ...given: unknown[]): Database {
    const statement = once(this, sql, refusal(given.at(-1)));
    statement[name](...given);
    statement.finalize();
    return this;
  };
}

Database.prototype.prepare = function (this: Database, sql: string, ...given: unknown[]): Statement<Database> {
  const statement = new Statement(this, sql, refusal(given.at(-1)));
  return given.length > 0 ? statement.bind(...given) : statement;
};
