/**
 * Where the database of a program of node-sqlite3 is: which file a name means, and how it is opened.
 *
 * Owns: the databases in memory that have a name. Invariant: such a database is there as long as one of its `Database`s is open. Leaves out:
 * running anything.
 */

import type { Connection } from "../handles/connection.js";
import type { Database } from "../handles/database.js";
import { opened } from "../handles/open.js";
import type { Options } from "../handles/options.js";
import {
  CANTOPEN,
  MISUSE,
  OPEN_CREATE,
  OPEN_READONLY,
  OPEN_READWRITE,
  OPEN_SHAREDCACHE,
  OPEN_URI,
} from "./constants.js";
import { failureOf, type Failure } from "./failures.js";

/** What node-sqlite3 sets for each connection, in milliseconds. */
const BUSY_MS = 1_000;
/** A transaction of a program in which a person thinks may wait for them, in milliseconds. */
const IDLE_MS = 300_000;

/** Databases in memory by name, and how many use each. */
const named = new Map<string, { database: Promise<Database>; users: number }>();

/** The file, or the name of a database in memory. */
interface Found {
  path: string;
  shared: string | undefined;
}

export class Place {
  private readonly found: Found;
  private readonly options: Options;
  private database: Database | undefined;

  constructor(filename: string, mode: number) {
    this.found = found(filename.toWellFormed(), mode);
    this.options = {
      // They are as in node-sqlite3 on the connection.
      create: (mode & OPEN_CREATE) !== 0,
      optimizeEvery: false,
      readOnly: (mode & OPEN_READONLY) !== 0,
      tuning: { doubleQuotedStrings: true, transactionIdle: IDLE_MS },
    };
    const access = mode & (OPEN_READONLY | OPEN_READWRITE | OPEN_CREATE);
    if (![OPEN_READONLY, OPEN_READWRITE, OPEN_READWRITE | OPEN_CREATE].includes(access)) {
      throw { status: MISUSE, message: "bad parameter or other API misuse" } satisfies Failure;
    }
  }

  /** Resolves with a connection, or is rejected with a `Failure`. */
  async open(extensions: readonly string[]): Promise<Connection> {
    try {
      const options = extensions.length === 0 ? this.options : { ...this.options, loadExtension: extensions };
      this.database = await (this.found.shared === undefined
        ? opened(this.found.path, options, true)
        : this.join(options));
      return this.database.connection({ busyTimeout: BUSY_MS, foreignKeys: false });
    } catch (error) {
      const failure = failureOf(error);
      // The texts of SQLite's own say no more.
      throw failure.status === CANTOPEN ? { ...failure, message: "unable to open database file" } : failure;
    }
  }

  private join(options: Options): Promise<Database> {
    const name = this.found.shared!;
    const one = named.get(name) ?? { database: opened(":memory:", options, false), users: 0 };
    one.users++;
    named.set(name, one);
    return one.database;
  }

  /** Closes it, unless another `Database` has the same one in memory. */
  async close(): Promise<void> {
    const { database } = this;
    const { shared } = this.found;
    this.database = undefined;
    if (shared !== undefined) {
      const one = named.get(shared)!;
      if (--one.users > 0) {
        return;
      }
      named.delete(shared);
    }
    await database?.close();
  }

  /** The engine's own handle, while it is open. */
  get handle(): Database {
    return this.database!;
  }
}

/** What SQLite makes of the name. */
function found(filename: string, mode: number): Found {
  if (filename === "" || filename === ":memory:") {
    return { path: ":memory:", shared: undefined };
  }
  if (!filename.startsWith("file:")) {
    return { path: filename, shared: undefined };
  }
  if ((mode & OPEN_URI) === 0) {
    return { path: `./${filename}`, shared: undefined };
  }
  const [file = "", query] = filename.split(/\?(.*)/s);
  const keys = new URLSearchParams(query ?? "");
  const isShared = keys.get("cache") === "shared" || (!keys.has("cache") && (mode & OPEN_SHAREDCACHE) !== 0);
  keys.delete("cache");
  const name = decodeURIComponent(file.slice("file:".length));
  if (name === ":memory:" || keys.get("mode") === "memory") {
    return { path: ":memory:", shared: isShared ? name : undefined };
  }
  return { path: keys.size === 0 ? file : `${file}?${keys}`, shared: undefined };
}
