/**
 * What is behind a `Database`: the order of its calls, and its connection.
 *
 * Owns: both. Invariants: the order is that of node-sqlite3's own queue, in which an exclusive call runs alone; on the connection
 * statements run one after the other in the order in which they were sent. Leaves out: what a call does.
 */

import type { AsyncResource } from "node:async_hooks";
import { readExecuted } from "../calls/calls.js";
import type { Connection } from "../handles/connection.js";
import { OPTIONAL_NODE_SQLITE3, RUN_NODE_SQLITE3 } from "../handles/target.js";
import { hasEncryption, native } from "../native/addon.js";
import { FlatwaterError } from "../native/errors.js";
import { cells, type Reader } from "../native/loop.js";
import { BIG, MIXED } from "../values/decoder.js";
import { decode, HEADER, LIST } from "../values/rows.js";
import type { SqlValue } from "../values/sql.js";
import { ERROR, MISUSE, OK } from "./constants.js";
import { emit, errorOf, failureOf, type Callback, type Emits, type Failure } from "./failures.js";
import { Line } from "./line.js";
import type { Place } from "./place.js";
import { textOf, type Text } from "./values.js";

/** A row as the callbacks get it. */
export type Row = Record<string, unknown>;

const BLOB = 3;
/** Those that the columns have as they are, not as JavaScript's own. */
const READ = { integers: "auto", types: "stored" } as const;
const EARLIER = "SELECT last_insert_rowid(), changes()";

/** Reads the rows of a statement, and what it did. */
class Reads implements Reader<Reads> {
  changes = 0;
  lastInsertRowid: number | bigint | null = null;
  /** Undefined if it returns none. */
  rows: Row[] | undefined;

  chunk(text: string): void {
    if (cells[LIST]! < 0) {
      const { changes, lastInsertRowid } = readExecuted(HEADER);
      this.changes = changes;
      this.lastInsertRowid = lastInsertRowid;
      this.rows = cells[HEADER + 3] === 1 ? [] : undefined;
      return;
    }
    const rows = (this.rows ??= []);
    const [from, end] = [rows.length, HEADER + cells[1]!];
    let isPlain = true;
    for (let at = HEADER; at < end; at++) {
      isPlain &&= cells[at] !== BLOB && cells[at] !== BIG && cells[at] !== MIXED;
    }
    decode(text, "merged", rows);
    for (let at = isPlain ? rows.length : from; at < rows.length; at++) {
      asNodeSqlite3(rows[at]!);
    }
  }

  end(): this {
    return this;
  }
}

/** There a blob is a `Buffer`, and an integer always a number. */
function asNodeSqlite3(row: Row): void {
  for (const name in row) {
    const value = row[name];
    if (value instanceof Uint8Array) {
      row[name] = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    } else if (typeof value === "bigint") {
      row[name] = Number(value);
    }
  }
}

/** True for a key where nothing is encrypted, which SQLite ignores: Sequelize sets one if it is given a password. */
function isIgnored(error: unknown, sql: string): boolean {
  const isRefused = error instanceof FlatwaterError && error.code === "FLATWATER_CONNECTION_STATE";
  return isRefused && !hasEncryption() && native.statements(sql)[0]?.[2] === "key";
}

/** False if a text can have no parameters. */
const hasSigns = (text: string) => /[?:@$]/.test(text);

/** Where a database has what is behind it. */
export const CORE = Symbol("core");

/** What is behind a database. Undefined for anything else. */
export function coreOf(database: unknown): Core | undefined {
  return (database as { readonly [CORE]?: Core } | null | undefined)?.[CORE];
}

/** Which events the connection notes, as bits. */
export const TELLS: Record<string, number> = { trace: 1, profile: 2, change: 4 };

export class Core {
  isOpen = false;
  isClosing = false;
  isSerial = false;
  pending = 0;
  /** Statements and backups that keep the database from being closed. */
  unfinished = 0;
  connection!: Connection;
  /** Something has run on the connection. */
  isUsed = false;
  lastID = 0;
  changes = 0;
  private isLocked = false;
  private readonly line = new Line();
  private readonly extensions: string[] = [];
  private tells = 0;
  /** What `lastID` and `changes` are is to be asked for. */
  private isUnknown = false;

  constructor(
    readonly database: Emits,
    readonly place: Place | undefined,
  ) {}

  /** Begins a call now, or when its turn comes. */
  schedule(begin: () => void, where: AsyncResource, callback: Callback | undefined, isExclusive = false): void {
    if (!this.isOpen && this.isLocked) {
      // As there, in the call itself.
      const error = errorOf({ status: MISUSE, message: "Database is closed" });
      callback === undefined
        ? this.database.emit("error", error)
        : where.runInAsyncScope(callback, this.database, error);
    } else if (!this.isOpen || ((this.isLocked || isExclusive || this.isSerial) && this.pending > 0)) {
      this.line.push({ begin, callback, where, isExclusive: isExclusive || this.isSerial });
    } else {
      this.isLocked = isExclusive;
      begin();
    }
  }

  /** Goes on with what waits. */
  process(): void {
    if (!this.isOpen && this.isLocked) {
      return this.line.refuse("Database handle is closed", this.database);
    }
    while (this.isOpen && (!this.isLocked || this.pending === 0) && this.line.length > 0) {
      if (this.line.first!.isExclusive && this.pending > 0) {
        return;
      }
      const call = this.line.take();
      this.isLocked = call.isExclusive === true;
      call.begin();
      if (this.isLocked) {
        return;
      }
    }
  }

  /** Emits an event. What a listener throws is thrown by itself, as is an error that nobody listens to. */
  emit(name: string, ...given: unknown[]): void {
    emit(this.database, name, ...given);
  }

  /** Compiles a statement. */
  prepare(sql: string): Promise<unknown> {
    this.isUsed = true;
    return this.connection["perform"](7, sql, undefined, undefined, { end: () => undefined });
  }

  /** Resolves with whether a text can be compiled. */
  compiles(sql: string): Promise<boolean> {
    return this.prepare(sql).then(
      () => true,
      () => false,
    );
  }

  /** Runs a statement. `first`: of its rows only the first is wanted. `asks`: `lastID` and `changes` are wanted. */
  async run(text: Text, values: readonly SqlValue[], first: boolean, asks: boolean): Promise<Reads> {
    this.isUsed = true;
    try {
      const ran = await this.send(text.sql, values, first);
      await this.note(text, ran, asks);
      return ran;
    } catch (error) {
      if (isIgnored(error, text.sql)) {
        return new Reads();
      }
      this.isUnknown = true;
      throw error;
    } finally {
      this.tellAll(text.sql);
    }
  }

  private async send(sql: string, values: readonly SqlValue[], first: boolean): Promise<Reads> {
    const { connection } = this;
    if (first) {
      try {
        return await connection["perform"](OPTIONAL_NODE_SQLITE3, sql, values, undefined, new Reads(), READ);
      } catch (error) {
        if (!(error instanceof FlatwaterError) || error.code !== "FLATWATER_RETURNS_NO_ROWS") {
          throw error;
        }
      }
    }
    return connection["perform"](RUN_NODE_SQLITE3, sql, values, undefined, new Reads(), READ);
  }

  private async note({ changesRows }: Text, ran: Reads, asks: boolean): Promise<void> {
    if (ran.lastInsertRowid !== null) {
      this.lastID = Number(ran.lastInsertRowid);
    }
    if (changesRows) {
      this.changes = ran.changes;
    }
    const tellsAll = ran.lastInsertRowid !== null && changesRows;
    if (this.isUnknown && !tellsAll && asks) {
      const row = await this.connection.queryOne<number[]>(EARLIER, [], { rows: "array", integers: "auto" });
      [this.lastID, this.changes] = [Number(row[0]), Number(row[1])];
    }
    this.isUnknown &&= !tellsAll && !asks;
  }

  /** Runs the statements of a script one by one. As there, their parameters are NULL. */
  async exec(script: string): Promise<void> {
    this.isUsed = this.isUnknown = true;
    try {
      const all = hasSigns(script) ? native.statements(script).map(([sql]) => textOf(sql)) : [];
      if (all.every(({ names }) => names.length === 0)) {
        return await this.connection.executeScript(script);
      }
      for (const { sql, names } of all) {
        await this.send(
          sql,
          names.map(() => null),
          false,
        );
      }
    } finally {
      this.tellAll(script);
    }
  }

  /** Closes the connection, and the database. Resolves with what went wrong. */
  async close(): Promise<Failure> {
    try {
      await this.connection.close();
      await this.place!.close();
      return { status: OK, message: "" };
    } catch (error) {
      return failureOf(error);
    }
  }

  /** Loads an extension: opens the database once more, which has nothing yet that could be lost. */
  async load(path: string): Promise<void> {
    if (this.isUsed) {
      const message = "an extension is loaded before anything else is done with the database";
      throw { status: ERROR, message } satisfies Failure;
    }
    const place = this.place!;
    await this.connection.close();
    await place.close();
    try {
      this.connection = await place.open([...this.extensions, path]);
      this.extensions.push(path);
    } catch (error) {
      this.connection = await place.open(this.extensions);
      throw error;
    }
  }

  /** Notes an event from the next statement on, or no more. */
  tell(event: string, on: boolean): void {
    const bit = TELLS[event]!;
    this.tells = on ? this.tells | bit : this.tells & ~bit;
    native.tell(this.connection["handle"], this.tells);
  }

  /** Emits what was noted of a text. The engine runs statements of its own beside those. */
  private tellAll(of: string): void {
    if (this.tells === 0) {
      return;
    }
    for (const [event, first, ...others] of native.told(this.connection["handle"])) {
      if (event === "change") {
        this.emit(event, first, ...others);
      } else if (of.includes(first as string)) {
        event === "trace" ? this.emit(event, (others[0] as string).trimStart()) : this.emit(event, first, ...others);
      }
    }
  }
}
