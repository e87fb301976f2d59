// @ts-check
// A cache of values by key, each for a time: for what is slow to make, and may be made again.
//
// It shows a cache that all processes of a file share. A value that is missing is made once in a process, however many ask for it.
// What has expired is never returned, and is deleted by a sweep, in parts that keep no writer waiting.
//
//     make node-package && cd examples/node && npm install
//     node cache.mjs [cache.db]
import { pathToFileURL } from "node:url";
import { open } from "flatwater";

export const CACHE = `
CREATE TABLE cache (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL,          -- JSON
  expires REAL NOT NULL         -- In seconds.
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_expires ON cache (expires)`;

const GET =
  "SELECT value FROM cache WHERE key = ? AND expires > unixepoch('subsec')";
const SET = `INSERT INTO cache VALUES (?, ?, unixepoch('subsec') + ?)
  ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires`;
const SWEEP = `DELETE FROM cache WHERE key IN
  (SELECT key FROM cache WHERE expires <= unixepoch('subsec') ORDER BY expires LIMIT ?)`;

export class Cache {
  /** What is being made, by key. @type {Map<string, Promise<unknown>>} */
  #making = new Map();

  /** @param {import("flatwater").Database} db */
  constructor(db) {
    this.db = db;
  }

  /** Resolves with the value, or undefined. @param {string} key */
  async get(key) {
    const value = await this.db.queryOptionalValue(GET, [key]);
    return typeof value === "string" ? JSON.parse(value) : undefined;
  }

  /**
   * Stores a value for so many seconds. It must have a form in JSON.
   * @param {string} key
   * @param {unknown} value
   * @param {number} seconds
   */
  async set(key, value, seconds) {
    await this.db.execute(SET, [key, JSON.stringify(value), seconds]);
  }

  /** @param {string} key */
  async delete(key) {
    await this.db.execute("DELETE FROM cache WHERE key = ?", [key]);
  }

  /**
   * Resolves with the value, which is made and stored if it is not there.
   * @param {string} key
   * @param {number} seconds
   * @param {() => Promise<unknown> | unknown} make
   */
  async getOrMake(key, seconds, make) {
    const value = await this.get(key);
    if (value !== undefined) {
      return value;
    }
    let making = this.#making.get(key);
    if (making === undefined) {
      making = this.#make(key, seconds, make).finally(() =>
        this.#making.delete(key),
      );
      this.#making.set(key, making);
    }
    return making;
  }

  /**
   * @param {string} key
   * @param {number} seconds
   * @param {() => Promise<unknown> | unknown} make
   */
  async #make(key, seconds, make) {
    const value = await make();
    await this.set(key, value, seconds);
    return value;
  }

  /** Deletes what has expired, so many at a time. Resolves with their number. */
  async sweep(atOnce = 500) {
    let swept = 0;
    for (let changes = atOnce; changes === atOnce; swept += changes) {
      ({ changes } = await this.db.execute(SWEEP, [atOnce]));
    }
    return swept;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const db = await open(process.argv[2] ?? "cache.db", {
    migrations: [["001_cache", CACHE]],
  });
  const cache = new Cache(db);
  const slow = async () => {
    console.log("made");
    return { answer: 42 };
  };
  const all = [1, 2, 3].map(() => cache.getOrMake("answer", 60, slow));
  console.log(await Promise.all(all));
  await db.close();
}
