// Another SQLite of this process on the same file.
import assert from "node:assert/strict";
import { isBuiltin } from "node:module";
import { test } from "node:test";
import { open } from "../../dist/index.mjs";
import { betterSqlite3, folder } from "../support.mjs";

/** Node's own where it has one, otherwise better-sqlite3. */
async function otherSqlite() {
  return isBuiltin("node:sqlite") ? (await import("node:sqlite")).DatabaseSync : betterSqlite3();
}

const Other = await otherSqlite();

test(
  "it is noticed, writes are refused from then on, and none that was acknowledged is lost",
  { skip: Other === undefined && "it needs node:sqlite, or the better-sqlite3 of lab/peers/node, for this Node" },
  async (t) => {
    const path = `${folder(t)}/a.db`;
    const db = await open(path);
    await db.execute("CREATE TABLE t (a)");
    const other = new Other(path);
    other.prepare("SELECT count(*) FROM t").get();
    let writes = 0;
    const write = async () => {
      for (;;) {
        await db.execute("INSERT INTO t VALUES (1)");
        writes++;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    await assert.rejects(write, { kind: "misuse", message: /another SQLite library in this process/ });
    assert.equal(await db.queryValue("SELECT count(*) FROM t"), writes);
    other.close();
    await db.close();
    const again = await open(path);
    assert.equal(await again.queryValue("SELECT count(*) FROM t"), writes);
    assert.equal(await again.queryValue("PRAGMA integrity_check"), "ok");
    await again.close();
  },
);
