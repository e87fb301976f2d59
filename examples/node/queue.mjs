// @ts-check
// A queue of jobs in a table: claimed by one worker each, tried again later if they fail, and kept as dead after the last try.
//
// It shows a queue without polling: a live query wakes a worker when a job comes, whichever process added it, and a timer when one is
// due. A job that its worker does not end in time is claimed again, so a worker that dies loses none, and a job may run twice.
//
//     make node-package && cd examples/node && npm install
//     node queue.mjs [queue.db]
import { pathToFileURL } from "node:url";
import { open } from "flatwater";

export const JOBS = `
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY,
  payload TEXT NOT NULL,                                -- JSON
  due REAL NOT NULL DEFAULT (unixepoch('subsec')),      -- When it may be claimed, in seconds.
  tries INTEGER NOT NULL DEFAULT 0,
  error TEXT,                                           -- Why the last try failed.
  is_dead INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX jobs_due ON jobs (due) WHERE NOT is_dead`;

const NEXT = "SELECT min(due) AS due FROM jobs WHERE NOT is_dead";
const CLAIM = `UPDATE jobs SET tries = tries + 1, due = unixepoch('subsec') + :lease
  WHERE id = (SELECT id FROM jobs WHERE NOT is_dead AND due <= unixepoch('subsec') ORDER BY due LIMIT 1)
  RETURNING id, payload, tries`;
// Who has claimed it since has another number of tries.
const DONE = "DELETE FROM jobs WHERE id = :id AND tries = :tries";
const FAILED = `UPDATE jobs SET error = :error, due = unixepoch('subsec') + :wait, is_dead = tries >= :most
  WHERE id = :id AND tries = :tries`;

/** @typedef {{ id: number, payload: string, tries: number }} Job */

/**
 * Adds a job, in a transaction or on the database.
 * @param {import("flatwater").Session} on
 * @param {unknown} payload
 * @param {{ delay?: number }} [options] In seconds.
 */
export async function add(on, payload, { delay = 0 } = {}) {
  const sql =
    "INSERT INTO jobs (payload, due) VALUES (?, unixepoch('subsec') + ?)";
  return (await on.execute(sql, [JSON.stringify(payload), delay]))
    .lastInsertRowid;
}

/**
 * Does one job that is due. Resolves with false if there is none.
 * @param {import("flatwater").Database} db
 * @param {(payload: any, job: Job) => Promise<void> | void} handle
 * @param {{ lease: number, most: number, backoff: (tries: number) => number }} options
 */
async function one(db, handle, { lease, most, backoff }) {
  const [job] = await db.query(CLAIM, { lease });
  if (job === undefined) {
    return false;
  }
  const { id, payload, tries } = /** @type {Job} */ (job);
  try {
    await handle(JSON.parse(payload), { id, payload, tries });
  } catch (error) {
    const wait = backoff(tries);
    await db.execute(FAILED, { id, tries, error: String(error), wait, most });
    return true;
  }
  await db.execute(DONE, { id, tries });
  return true;
}

/**
 * Works until the signal is aborted: does what is due, and sleeps until something else is.
 * @param {import("flatwater").Database} db
 * @param {(payload: any, job: Job) => Promise<void> | void} handle
 * @param {{ signal?: AbortSignal, lease?: number, most?: number, backoff?: (tries: number) => number }} [options] Times in seconds.
 */
export async function work(db, handle, options = {}) {
  const {
    signal,
    lease = 30,
    most = 5,
    backoff = (tries) => 2 ** tries,
  } = options;
  const news = db.live(NEXT)[Symbol.asyncIterator]();
  const stopped = new Promise((resolve) =>
    signal?.addEventListener("abort", resolve, { once: true }),
  );
  let told = news.next();
  while (!signal?.aborted) {
    if (await one(db, handle, { lease, most, backoff })) {
      continue;
    }
    const due = await db.queryValue(NEXT);
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const isDue = new Promise((resolve) => {
      if (typeof due === "number") {
        timer = setTimeout(resolve, Math.max(due * 1_000 - Date.now(), 1));
      }
    });
    const woken = await Promise.race([
      told.then(() => true),
      isDue,
      stopped,
    ]).finally(() => clearTimeout(timer));
    if (woken === true) {
      told = news.next();
    }
  }
  await news.return?.();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const db = await open(process.argv[2] ?? "queue.db", {
    migrations: [["001_jobs", JOBS]],
  });
  const ended = new AbortController();
  const worker = work(db, ({ name }) => console.log(`hello ${name}`), ended);
  for (const name of ["Ada", "Eve"]) {
    await add(db, { name });
  }
  for await (const rows of db.live("SELECT id FROM jobs")) {
    if (rows.length === 0) break;
  }
  ended.abort();
  await worker;
  await db.close();
}
