// The peer: Flatwater for Node, from this working tree.
//
// Owns: how it is opened and called. Leaves out: the lanes.

const { open } = await import(process.env.FLATWATER_PACKAGE);

export const VERSION = `flatwater of this tree, Node ${process.versions.node}`;

export class Peer {
  static awaits = true;

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

  close() {
    return this.database.close();
  }
}
