// The peer: better-sqlite3 on Node's one thread.
//
// Owns: how it is opened and called. A statement is prepared once and kept, as the library's users do, and rows are its
// objects. Leaves out: the lanes.

import { createRequire } from "node:module";

import Database from "better-sqlite3";

const { version } = createRequire(import.meta.url)("better-sqlite3/package.json");
export const VERSION = `better-sqlite3 ${version}, Node ${process.versions.node}`;

export class Peer {
  /** Whether its calls return promises. */
  static awaits = false;
  static module = "better-sqlite3";

  #statements = new Map();
  #many;
  #batch;

  constructor(path, synchronous = "NORMAL") {
    this.database = new Database(path, { timeout: 30_000 });
    const settings = ["journal_mode = wal", `synchronous = ${synchronous}`, "foreign_keys = on", "cache_size = -16384",
      "mmap_size = 0"];
    settings.forEach((setting) => this.database.pragma(setting));
    this.#many = this.transaction((sql, rows) => this.each(sql, rows));
    this.#batch = this.transaction((all) => all.map(([sql, params]) => this.#prepared(sql).run(params)));
  }

  #prepared(sql) {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** One statement; answers how many rows it changed. */
  execute(sql, ...params) {
    return this.#prepared(sql).run(...params).changes;
  }

  /** One statement for each row. */
  each(sql, rows) {
    const statement = this.#prepared(sql);
    let changed = 0;
    for (const row of rows) changed += statement.run(row).changes;
    return changed;
  }

  /** One statement for each row, in one transaction. */
  many(sql, rows) {
    return this.#many(sql, rows);
  }

  /** Statements with their parameters, in one transaction; answers what each of them did. */
  batch(statements) {
    return this.#batch(statements);
  }

  query(sql, ...params) {
    return this.#prepared(sql).all(...params);
  }

  /** A statement's own call for one row. */
  one(sql) {
    const statement = this.#prepared(sql);
    return (params) => statement.get(params);
  }

  /** A statement's own call for a write. */
  write(sql) {
    const statement = this.#prepared(sql);
    return (params) => statement.run(params);
  }

  /** The rows of a query as a JSON array of objects in UTF-8. */
  json(sql) {
    return Buffer.from(JSON.stringify(this.query(sql)));
  }

  /** The function that runs `body` in an immediate transaction. */
  transaction(body) {
    return this.database.transaction(body).immediate;
  }

  /** The function that runs `body` in a savepoint of the open transaction. */
  nested(body) {
    return this.database.transaction(body);
  }

  /** Kysely on its dialect for this library. */
  async kysely() {
    const { Kysely, SqliteDialect } = await import("kysely");
    return new Kysely({ dialect: new SqliteDialect({ database: this.database }) });
  }

  close() {
    this.database.close();
  }
}
