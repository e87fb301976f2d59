// The types of the surface of node-sqlite3, as a program with its types uses them.
import sqlite3, { Database, type RunResult } from "flatwater/sqlite3";

const db: Database = new sqlite3.Database(":memory:", sqlite3.OPEN_READWRITE, (error) => error?.message);
db.serialize(() => {
  db.run("INSERT INTO t VALUES (?)", [1], function (this: RunResult, error: Error | null) {
    const id: number = this.lastID + this.changes;
    return error ?? id;
  });
  db.all<{ a: number }>("SELECT a FROM t", (_, rows) => rows.map(({ a }) => a.toFixed()));
  db.each<{ a: number }>(
    "SELECT a FROM t",
    (_, row) => row.a.toFixed(),
    (_, count) => count.toFixed(),
  );
});
const statement = db.prepare("SELECT a FROM t WHERE a = ?", 1);
statement.get<{ a: number }>((_, row) => row?.a.toFixed());
statement.finalize().run("DELETE FROM t");
db.on("trace", (sql: string) => sql.length);
sqlite3.verbose().cached.Database("t.db").configure("busyTimeout", 5);
// @ts-expect-error a database has a name
new Database();
