// The peer: Flatwater for Node, from this working tree.
//
// Owns: how it is opened and called. Leaves out: the lanes.

import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const PACKAGE = pathToFileURL(resolve(process.env.FLATWATER_PACKAGE)).href;
const { open } = await import(PACKAGE);

export const VERSION = `flatwater of this tree, Node ${process.versions.node}`;

export class Peer {
  static awaits = true;
  static module = PACKAGE;

  constructor(database) {
    this.database = database;
  }

  static async open(path, synchronous = "NORMAL") {
    return new Peer(await open(path, { durability: synchronous === "FULL" ? "full" : "normal" }));
  }

  async execute(sql, ...params) {
    return (await this.database.execute(sql, params)).changes;
  }

  many(sql, rows) {
    return this.database.executeMany(sql, rows);
  }

  batch(statements) {
    return this.database.batch(statements);
  }

  query(sql, ...params) {
    return this.database.query(sql, params);
  }

  json(sql) {
    return this.database.queryJson(sql);
  }

  one(sql) {
    return (params) => this.database.queryOptional(sql, params);
  }

  write(sql) {
    return (params) => this.database.execute(sql, params);
  }

  /** The function that runs `body` in a transaction. */
  transaction(body) {
    return () => this.database.transaction(async (tx) => body((sql, params) => tx.execute(sql, params)));
  }

  /** Kysely on the package's dialect. */
  async kysely() {
    const { Kysely } = await import("kysely");
    const { FlatwaterDialect } = await import(new URL("kysely.mjs", PACKAGE).href);
    return new Kysely({ dialect: new FlatwaterDialect({ database: this.database }) });
  }

  close() {
    return this.database.close();
  }
}
