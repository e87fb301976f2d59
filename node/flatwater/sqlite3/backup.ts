/**
 * A copy of a database of node-sqlite3, step by step.
 *
 * Owns: counting the pages of the steps. Invariants: the file is copied when the last page is asked for, so it is the database of that
 * moment, and gets its name when it is complete; a file that somebody uses is not replaced. Leaves out: copying, which the engine does.
 */

import { AsyncResource } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { existsSync } from "node:fs";
import { open, rename, rm, stat } from "node:fs/promises";
import { opened } from "../handles/open.js";
import { BUSY, ERROR, LOCKED, OK } from "./constants.js";
import { coreOf, type Core } from "./core.js";
import { DONE, failureOf, tell, type Callback, type Failure } from "./failures.js";
import { optional } from "./values.js";
import { Works } from "./work.js";

const UNSUPPORTED = "a backup is of the database itself into a file: use ATTACH, or open the file, for others";

export class Backup extends EventEmitter {
  declare readonly filename: string;
  declare readonly sourceName: string;
  declare readonly destName: string;
  declare readonly filenameIsDest: boolean;
  /** The pages of the database, and those that were not asked for, as of the last step. */
  pageCount = 0;
  remaining = 0;
  completed = false;
  failed = false;

  readonly #core: Core;
  readonly #works: Works;
  /** It keeps the database from being closed. */
  #isOpen = false;
  #hasMade = false;
  #retryErrors: readonly number[] = [BUSY, LOCKED];

  constructor(
    database: EventEmitter,
    filename: string,
    sourceName: string,
    destName: string,
    filenameIsDest: boolean,
    callback?: Callback,
  ) {
    super();
    const core = coreOf(database);
    if (core === undefined) {
      throw new TypeError("Database object expected");
    }
    check(typeof filename === "string", "Filename expected");
    check(typeof sourceName === "string", "Source database name expected");
    check(typeof destName === "string", "Destination database name expected");
    check(typeof filenameIsDest === "boolean", "Direction flag expected");
    check(callback === undefined || typeof callback === "function", "Callback expected");
    this.#core = core;
    this.#works = new Works(core, this, "Backup", "Backup is already finished");
    for (const [name, value] of Object.entries({ filename, sourceName, destName, filenameIsDest })) {
      Object.defineProperty(this, name, { value });
    }
    const where = new AsyncResource("sqlite3.Backup.Initialize");
    core.schedule(() => void this.#begin(where, callback), where, callback);
  }

  async #begin(where: AsyncResource, callback: Callback | undefined): Promise<void> {
    const works = this.#works;
    this.#core.pending++;
    await null;
    if (this.filenameIsDest && this.sourceName === "main" && this.destName === "main") {
      works.isReady = this.#isOpen = true;
      this.#core.unfinished++;
      tell(where, callback, this, null);
    } else {
      works.failure = { status: ERROR, message: UNSUPPORTED };
      works.fail(where, callback);
      this.#finish();
    }
    works.end();
  }

  /** Copies so many pages, or all that are left. Calls back with whether the copy is complete. */
  step(pages: number, callback?: (this: Backup, error: Error | null, completed?: boolean) => void): this {
    check(typeof pages === "number", "Argument 0 must be an integer");
    check(callback === undefined || typeof callback === "function", "Argument 1 must be a function");
    const retried = this.#retryErrors.filter((code) => typeof code === "number");
    const works = this.#works;
    const run = async () => {
      if (this.#isOpen) {
        await this.#step(pages).catch((error: unknown) => (works.failure = failureOf(error)));
      }
      const { status } = works;
      if (status !== OK && retried.length > 0 && !retried.includes(status)) {
        await this.#letGo();
      }
      this.completed ||= status === DONE;
      this.failed ||= status !== DONE && !this.#isOpen;
    };
    const after = (where: AsyncResource) =>
      works.tell(where, callback, works.status === OK || works.status === DONE, works.status === DONE);
    works.add("Step", callback, { run, after });
    return this;
  }

  async #step(pages: number): Promise<void> {
    const before = this.pageCount - this.remaining;
    this.pageCount = await this.#core.connection.queryValue<number>("PRAGMA page_count");
    this.remaining = Math.max(this.pageCount - before, 0);
    await this.#make();
    if (pages >= 0 && pages < this.remaining) {
      this.remaining -= pages;
      return this.#works.is(OK);
    }
    const copy = `${this.filename}-copy`;
    await rm(copy, { force: true });
    await this.#core.place!.handle.backup(copy);
    await rename(copy, this.filename);
    this.remaining = 0;
    this.#hasMade = false;
    this.#works.is(DONE);
  }

  /** Makes the file, or finds out whether the one that is there is used. */
  async #make(): Promise<void> {
    const { filename } = this;
    const size = await stat(filename).then(
      ({ size }) => size,
      () => undefined,
    );
    if (size === undefined) {
      await (await open(filename, "wx")).close();
      this.#hasMade = true;
    } else if (size > 0) {
      const database = await opened(filename, { create: false, journal: "keep" }, true);
      try {
        const connection = database.connection({ busyTimeout: 0 });
        await connection.executeScript("BEGIN IMMEDIATE; ROLLBACK");
        await connection.close();
      } finally {
        await database.close();
      }
      if (existsSync(`${filename}-wal`)) {
        throw { status: BUSY, message: "database is locked" } satisfies Failure;
      }
    }
  }

  /** Ends the copy. One that is not complete leaves no file. */
  finish(callback?: (this: Backup) => void): this {
    optional(0, callback);
    const after = (where: AsyncResource) => {
      this.#finish();
      tell(where, callback, this);
    };
    this.#works.add("Finish", callback, { run: () => this.#letGo(), after });
    return this;
  }

  async #letGo(): Promise<void> {
    if (this.#isOpen) {
      this.#isOpen = false;
      this.#core.unfinished--;
    }
    if (this.#hasMade) {
      this.#hasMade = false;
      await rm(this.filename, { force: true });
    }
  }

  #finish(): void {
    this.failed ||= !this.completed;
    this.#works.finish();
  }

  /** True if a step would begin at once. */
  get idle(): boolean {
    const { isReady, isLocked, length } = this.#works;
    return isReady && !isLocked && length === 0;
  }

  /** The result codes after which the copy goes on with the next step. After any other it is let go. */
  get retryErrors(): readonly number[] {
    return this.#retryErrors;
  }

  set retryErrors(codes: readonly number[]) {
    if (!Array.isArray(codes)) {
      throw new Error("retryErrors must be an array");
    }
    this.#retryErrors = codes;
  }
}

function check(isSo: boolean, message: string): void {
  if (!isSo) {
    throw new TypeError(message);
  }
}
