// The entries of this package in better-sqlite3's benchmark: a driver, and a function for each type of its trials.
"use strict";

/** Opens a database with the PRAGMAs that the benchmark asks for, which are options here. */
exports.driver = async (filename, pragmas) => {
  const { open } = await import(process.env.FLATWATER_PACKAGE);
  const asked = new Map(pragmas.map((pragma) => pragma.split(/\s*=\s*/)));
  const bytes = Math.max(-Number(asked.get("cache_size")) * 1024, 64 * 1024);
  const db = await open(filename, {
    durability: asked.get("synchronous") === "FULL" ? "full" : "normal",
    journal: asked.get("journal_mode") === "WAL" ? "wal" : "keep",
    tuning: { readerCacheBytes: bytes, writerCacheBytes: bytes },
  });
  const exec = (sql) => (/^VACUUM/.test(sql) ? db.vacuum() : db.executeScript(sql));
  return Object.defineProperty(db, "exec", { value: exec });
};

/** The statement that inserts a row, and the row: the first of the table. */
async function insertOf(db, { table, columns }) {
  const values = columns.map((column) => `@${column}`).join(", ");
  const row = await db.queryOne(`SELECT ${columns.join(", ")} FROM ${table} LIMIT 1`);
  return [`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${values})`, row];
}

const hundred = ({ table, columns }) => `SELECT ${columns.join(", ")} FROM ${table} WHERE rowid >= ? LIMIT 100`;

exports.types = {
  insert: async (db, ctx) => {
    const [sql, row] = await insertOf(db, ctx);
    return () => db.execute(sql, row);
  },
  select: async (db, { table, columns, count }) => {
    const sql = `SELECT ${columns.join(", ")} FROM ${table} WHERE rowid = ?`;
    let rowid = -1;
    return () => db.queryOptional(sql, [(++rowid % count) + 1]);
  },
  "select-all": async (db, ctx) => {
    let rowid = -100;
    return () => db.query(hundred(ctx), [((rowid += 100) % ctx.count) + 1]);
  },
  "select-iterate": async (db, ctx) => {
    let rowid = -100;
    return async () => {
      for await (const _ of db.stream(hundred(ctx), [((rowid += 100) % ctx.count) + 1]));
    };
  },
  transaction: async (db, ctx) => {
    const [sql, row] = await insertOf(db, ctx);
    return () =>
      db.transaction(async (tx) => {
        for (let i = 0; i < 100; i++) await tx.execute(sql, row);
      });
  },
};
