// The peer: node:sqlite, the module of Node itself, on Node's one thread.
//
// Owns: how it is opened and called. A statement is prepared once and kept, as the library's users do, and rows are its
// objects. Leaves out: the lanes. A Node without the module has no lanes.

const { DatabaseSync } = await import("node:sqlite").catch(() => ({}));

export const VERSION = `node:sqlite, Node ${process.versions.node}`;

class NodeSqlite {
  /** Whether its calls return promises. */
  static awaits = false;
  static module = "node:sqlite";

  #statements = new Map();

  constructor(path, synchronous = "NORMAL") {
    this.database = new DatabaseSync(path, { timeout: 30_000 });
    const settings = ["journal_mode = wal", `synchronous = ${synchronous}`, "foreign_keys = on", "cache_size = -16384",
      "mmap_size = 0"];
    settings.forEach((setting) => this.database.exec(`PRAGMA ${setting}`));
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
    return Number(this.#prepared(sql).run(...params).changes);
  }

  /** One statement for each row. */
  each(sql, rows) {
    const statement = this.#prepared(sql);
    let changed = 0;
    for (const row of rows) changed += Number(statement.run(...row).changes);
    return changed;
  }

  /** One statement for each row, in one transaction. */
  many(sql, rows) {
    return this.transaction(() => this.each(sql, rows))();
  }

  /** Statements with their parameters, in one transaction; answers what each of them did. */
  batch(statements) {
    return this.transaction(() => statements.map(([sql, params]) => this.#prepared(sql).run(...params)))();
  }

  query(sql, ...params) {
    return this.#prepared(sql).all(...params);
  }

  /** A statement's own call for one row. */
  one(sql) {
    const statement = this.#prepared(sql);
    return (params) => statement.get(...params);
  }

  /** A statement's own call for a write. */
  write(sql) {
    const statement = this.#prepared(sql);
    return (params) => statement.run(...params);
  }

  /** The rows of a query as a JSON array of objects in UTF-8. */
  json(sql) {
    return Buffer.from(JSON.stringify(this.query(sql)));
  }

  /** The function that runs `body` in an immediate transaction. */
  transaction(body) {
    return this.#within("BEGIN IMMEDIATE", body, "COMMIT", "ROLLBACK");
  }

  /** The function that runs `body` in a savepoint of the open transaction. */
  nested(body) {
    return this.#within("SAVEPOINT nested", body, "RELEASE nested", "ROLLBACK TO nested");
  }

  #within(begin, body, end, undo) {
    return (...given) => {
      this.execute(begin);
      try {
        const answer = body(...given);
        this.execute(end);
        return answer;
      } catch (error) {
        this.execute(undo);
        throw error;
      }
    };
  }

  close() {
    this.database.close();
  }
}

export const Peer = DatabaseSync && NodeSqlite;
