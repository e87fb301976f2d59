// chat: the mixed traffic of a chat service, one call after another; kit/src/lanes/chat_plan.rs draws the same.
//
// chat_50: the same from 50 requests at work, as kit/src/lanes/chat_tasks.rs has it; service_50: one call in fifty writes. On a synchronous
// library a request makes all its calls before the next one begins.

import assert from "../assert.mjs";

import { text, times } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { Traffic, zipf } from "../traffic.mjs";

const now = process.hrtime.bigint;
const CREATE = [
  "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, avatar TEXT NOT NULL)",
  "CREATE TABLE conversations (id INTEGER PRIMARY KEY, last_at INTEGER NOT NULL)",
  "CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, sender INTEGER NOT NULL, " +
  "body TEXT NOT NULL, sent_at INTEGER NOT NULL)",
  "CREATE INDEX messages_newest ON messages (conversation, sent_at)",
];
const INSERT = "INSERT INTO messages (id, conversation, sender, body, sent_at) VALUES (?, ?, ?, ?, ?)";
const SQL = {
  send: INSERT,
  update: "UPDATE conversations SET last_at = ? WHERE id = ?",
  last: "SELECT m.id, m.body, m.sent_at, u.name, u.avatar FROM messages m " +
    "JOIN users u ON u.id = m.sender WHERE m.conversation = ? ORDER BY m.sent_at DESC LIMIT 20",
  user: "SELECT id, name, avatar FROM users WHERE id = ?",
};
const TOUCH = {
  last: (rows) => rows.reduce((sum, row) =>
    sum + row.id + text(row.body) + row.sent_at + text(row.name) + text(row.avatar), rows.length),
  user: (rows) => rows.reduce((sum, row) => sum + row.id + text(row.name) + text(row.avatar), rows.length),
};
// How many of a hundred calls are of each kind; the rest are users by id.
const CHAT = { send: 5, update: 5, last: 45 };
const MOSTLY_READS = { send: 1, update: 1, last: 49 };
const USERS = 500;
const CONVERSATIONS = 100;
const SHOWN = 20;
const REQUESTS = 50;
const BEGAN = 1_700_000_000;

/** The data and the calls, with what each must answer. */
class Plan {
  #traffic = new Traffic();
  #zipf = zipf(CONVERSATIONS);
  #newest = times(CONVERSATIONS, () => []);
  users = times(USERS, (i) => {
    const id = i + 1;
    return { id, name: `User ${id}`, avatar: `https://chat.example/avatars/${id}.png` };
  });
  conversations = times(CONVERSATIONS, (i) => ({ id: i + 1, last_at: BEGAN }));
  messages = [];

  constructor(mix, messages, calls) {
    this.mix = mix;
    this.seeded = times(messages, () => this.#send());
    this.calls = times(calls, () => this.#call());
  }

  #send() {
    const id = this.messages.length + 1;
    const conversation = this.#traffic.place(this.#zipf) + 1;
    const sender = this.#traffic.below(USERS) + 1;
    const words = "so it goes ".repeat(this.#traffic.below(12) + 1);
    const message = { id, conversation, sender, body: `Message ${id}: ${words}`, sent_at: BEGAN + id };
    this.messages.push(message);
    this.#newest[conversation - 1].push(message);
    return message;
  }

  #call() {
    const drawn = this.#traffic.below(100);
    const { send, update, last } = this.mix;
    if (drawn < send) return { kind: "send", params: Object.values(this.#send()) };
    if (drawn < send + update) {
      const conversation = this.conversations[this.#traffic.place(this.#zipf)];
      conversation.last_at = BEGAN + this.messages.length;
      return { kind: "update", params: [conversation.last_at, conversation.id] };
    }
    if (drawn < send + update + last) {
      const place = this.#traffic.place(this.#zipf);
      const newest = this.#newest[place].slice(-SHOWN);
      const shown = newest.map((message) => ({ ...this.users[message.sender - 1], ...message }));
      return { kind: "last", params: [place + 1], expected: TOUCH.last(shown) };
    }
    const user = this.users[this.#traffic.below(USERS)];
    return { kind: "user", params: [user.id], expected: TOUCH.user([user]) };
  }
}

async function fill(peer, plan) {
  for (const sql of CREATE) await peer.execute(sql);
  await peer.many("INSERT INTO users (id, name, avatar) VALUES (?, ?, ?)", plan.users.map(Object.values));
  const conversations = plan.conversations.map(({ id }) => [id, BEGAN]);
  await peer.many("INSERT INTO conversations (id, last_at) VALUES (?, ?)", conversations);
  await peer.many(INSERT, plan.seeded.map(Object.values));
}

/** Makes the calls, and keeps the latencies of each kind. What the last messages are is known if they are made one by one. */
async function ask(peer, timing, kinds, calls, oneByOne) {
  const { awaits } = peer.constructor;
  for (const { kind, params, expected = 1 } of calls) {
    const touch = TOUCH[kind];
    const began = now();
    let answer = touch ? peer.query(SQL[kind], ...params) : peer.execute(SQL[kind], ...params);
    if (awaits) answer = await answer;
    const seen = touch ? touch(answer) : answer;
    const took = Number(now() - began);
    timing.samples.push(took);
    kinds[kind].push(took);
    const right = oneByOne || kind !== "last" ? seen === expected : answer.length === SHOWN;
    assert.ok(right, `the answer to ${kind} ${params} is not the expected one`);
  }
}

/** Makes the calls, each after another or from requests that take the next one of a list. */
async function make(peer, timing, calls, requests) {
  const kinds = { send: [], update: [], last: [], user: [] };
  const list = calls.values();
  await Promise.all(times(requests, () => ask(peer, timing, kinds, list, requests === 1)));
  return kinds;
}

/** Each conversation has the time that its last update wrote; or one of its updates, if the calls were made at once. */
async function expectConversations(peer, plan, requests) {
  const found = await peer.query("SELECT id, last_at FROM conversations ORDER BY id");
  if (requests === 1) return assert.deepEqual(found, plan.conversations, "the conversations");
  const written = new Map(plan.conversations.map(({ id, last_at }) => [id, new Set([last_at])]));
  for (const { kind, params } of plan.calls) if (kind === "update") written.get(params[1]).add(params[0]);
  assert.equal(found.length, plan.conversations.length);
  assert.ok(found.every(({ id, last_at }) => written.get(id).has(last_at)), "times that no update wrote");
}

function run(trial, mix, requests) {
  const one = requests === 1;
  const [warm, count] = one ? [trial.size(500, 50), trial.size(10_000, 500)] : [trial.size(5_000, 200), trial.size(40_000, 500)];
  const plan = new Plan(mix, one ? trial.size(10_000, 1_000) : 20_000, warm + count);
  return trial.opened(async (peer) => {
    await fill(peer, plan);
    await make(peer, new Timing(), plan.calls.slice(0, warm), requests);
    const timing = new Timing();
    const kinds = await make(peer, timing, plan.calls.slice(warm), requests);
    Object.entries(kinds).forEach(([kind, samples]) => timing.kind(kind, samples));
    const figures = timing.end(count);
    const messages = await peer.query("SELECT id, conversation, sender, body, sent_at FROM messages ORDER BY id");
    assert.deepEqual(messages, plan.messages, "the messages");
    await expectConversations(peer, plan, requests);
    return figures;
  });
}

const lane = { awaits: true, tag: "release", group: "scenarios", ops_unit: "calls" };
export const LANES = [
  { ...lane, name: "chat", about: "a chat service's mix: 10 % writes, 45 % last messages, 45 % users by id",
    run: (trial) => run(trial, CHAT, 1) },
  { ...lane, name: "chat_50", about: `the mix of chat from ${REQUESTS} requests at work`,
    run: (trial) => run(trial, CHAT, REQUESTS) },
  { ...lane, name: "service_50", about: `${REQUESTS} requests at work, 2 % writes, 49 % last messages, 49 % users by id`,
    run: (trial) => run(trial, MOSTLY_READS, REQUESTS) },
];
