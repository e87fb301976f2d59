// chat: the mixed traffic of a chat service, one call after another; kit/src/lanes/chat_plan.rs draws the same.

import assert from "../assert.mjs";

import { expectRows, text, times } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { Traffic, zipf } from "../traffic.mjs";

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
const USERS = 500;
const CONVERSATIONS = 100;
const SHOWN = 20;
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

  constructor(messages, calls) {
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
    if (drawn < 5) return { kind: "send", params: Object.values(this.#send()) };
    if (drawn < 10) {
      const conversation = this.conversations[this.#traffic.place(this.#zipf)];
      conversation.last_at = BEGAN + this.messages.length;
      return { kind: "update", params: [conversation.last_at, conversation.id] };
    }
    if (drawn < 55) {
      const place = this.#traffic.place(this.#zipf);
      const newest = this.#newest[place].slice(-SHOWN);
      const shown = newest.map((message) => ({ ...this.users[message.sender - 1], ...message }));
      return { kind: "last", params: [place + 1], expected: TOUCH.last(shown) };
    }
    const user = this.users[this.#traffic.below(USERS)];
    return { kind: "user", params: [user.id], expected: TOUCH.user([user]) };
  }
}

function fill(peer, plan) {
  CREATE.forEach((sql) => peer.execute(sql));
  peer.many("INSERT INTO users (id, name, avatar) VALUES (?, ?, ?)", plan.users.map(Object.values));
  peer.many("INSERT INTO conversations (id, last_at) VALUES (?, ?)", plan.conversations.map(({ id }) => [id, BEGAN]));
  peer.many(INSERT, plan.seeded.map(Object.values));
}

/** Makes the calls; answers the latencies of each kind. */
function ask(peer, timing, calls) {
  const kinds = { send: [], update: [], last: [], user: [] };
  for (const { kind, params, expected = 1 } of calls) {
    const touch = TOUCH[kind];
    const call = touch ? () => touch(peer.query(SQL[kind], ...params)) : () => peer.execute(SQL[kind], ...params);
    assert.equal(timing.time(call), expected, `the answer to ${kind} ${params} is not the expected one`);
    kinds[kind].push(timing.samples.at(-1));
  }
  return kinds;
}

function run(trial) {
  const [warm, count] = [trial.size(500, 50), trial.size(10_000, 500)];
  const plan = new Plan(trial.size(10_000, 1_000), warm + count);
  return trial.open((peer) => {
    fill(peer, plan);
    ask(peer, new Timing(), plan.calls.slice(0, warm));
    const timing = new Timing();
    const kinds = ask(peer, timing, plan.calls.slice(warm));
    Object.entries(kinds).forEach(([kind, samples]) => timing.kind(kind, samples));
    const figures = timing.end(count);
    expectRows(peer, "SELECT id, conversation, sender, body, sent_at FROM messages ORDER BY id", plan.messages);
    expectRows(peer, "SELECT id, last_at FROM conversations ORDER BY id", plan.conversations);
    return figures;
  });
}

export const LANES = [
  { name: "chat", about: "a chat service's mix: 10 % writes, 45 % last messages, 45 % users by id", tag: "release",
    group: "scenarios", ops_unit: "calls", run },
];
