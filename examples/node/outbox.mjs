// @ts-check
// An outbox: messages to another system that are sent if, and only if, the transaction that wrote them commits.
//
// It shows a live query that drains a table. It wakes the sender when a message comes, whichever process wrote it. A message is deleted
// after it was sent, so it is sent at least once: the other side tells repeated ones by their number.
//
//     make node-package && cd examples/node && npm install
//     node outbox.mjs [outbox.db]
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { open } from "flatwater";

export const OUTBOX = `
CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, payload TEXT NOT NULL) STRICT`;

const FIRST = "SELECT id, topic, payload FROM outbox ORDER BY id LIMIT 1";

/** @typedef {{ id: number, topic: string, payload: any }} Message */

/**
 * Writes a message, in the transaction of what it tells of.
 * @param {import("flatwater").Session} tx
 * @param {string} topic
 * @param {unknown} payload
 */
export async function post(tx, topic, payload) {
  await tx.execute("INSERT INTO outbox (topic, payload) VALUES (?, ?)", [
    topic,
    JSON.stringify(payload),
  ]);
}

/**
 * Sends messages in their order until the signal is aborted. One that cannot be sent holds up those behind it, and is tried again.
 * A file has one sender at a time.
 * @param {import("flatwater").Database} db
 * @param {(message: Message) => Promise<void> | void} send
 * @param {{ signal?: AbortSignal, pause?: number }} [options] The first pause after a failure, in milliseconds.
 */
export async function drain(db, send, { signal, pause = 100 } = {}) {
  // What it returns may be older than what was deleted meanwhile: it wakes, and is not sent.
  const news = db.live(FIRST)[Symbol.asyncIterator]();
  signal?.addEventListener("abort", () => void news.return?.(), { once: true });
  for await (const _ of { [Symbol.asyncIterator]: () => news }) {
    for (let message = await next(db); message !== undefined;) {
      if (signal?.aborted) return;
      await sendOne(message, send, signal, pause);
      if (signal?.aborted) return;
      await db.execute("DELETE FROM outbox WHERE id = ?", [message.id]);
      message = await next(db);
    }
  }
}

/** @param {import("flatwater").Database} db @returns {Promise<Message | undefined>} */
async function next(db) {
  const row = await db.queryOptional(FIRST);
  return /** @type {Message | undefined} */ (row);
}

/**
 * Sends a message, however often that fails, with pauses that grow to a minute.
 * @param {Message} message
 * @param {(message: Message) => Promise<void> | void} send
 * @param {AbortSignal | undefined} signal
 * @param {number} pause
 */
async function sendOne({ id, topic, payload }, send, signal, pause) {
  for (let wait = pause; !signal?.aborted; wait = Math.min(wait * 2, 60_000)) {
    try {
      return await send({ id, topic, payload: JSON.parse(payload) });
    } catch {
      await setTimeout(wait);
    }
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const db = await open(process.argv[2] ?? "outbox.db", {
    migrations: [["001_outbox", OUTBOX]],
  });
  const ended = new AbortController();
  const draining = drain(
    db,
    ({ topic, payload }) => console.log(topic, payload),
    ended,
  );
  await db.transaction(async (tx) => {
    await post(tx, "order", { id: 1 });
    await post(tx, "order", { id: 2 });
  });
  for await (const rows of db.live("SELECT id FROM outbox")) {
    if (rows.length === 0) break;
  }
  ended.abort();
  await draining;
  await db.close();
}
