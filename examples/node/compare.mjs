// A chat on Flatwater and on better-sqlite3, in turns: requests at a pace beside a report now and then, what the event loop is held for,
// and inserts at once. FLATWATER_DEMO_SECONDS (4) is how long each side has for its requests.
//
// It prints what it has measured on this machine. Owns the traffic and its checks.
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const { open } = await import(process.env.FLATWATER_PACKAGE ?? "flatwater");
// The lab's, so that it is compiled once.
const Database = createRequire(
  new URL("../../lab/peers/node/", import.meta.url),
)("better-sqlite3");

const SECONDS = Number(process.env.FLATWATER_DEMO_SECONDS ?? 4);
const TURNS = 2;
const MEMBERS = 50;
const EVERY_MS = 40;
const READS_PER_MESSAGE = 9;
const AT_ONCE = 100;
const ROUNDS = 30;
const HISTORY = 20_000;

const MESSAGES = `CREATE TABLE messages (id INTEGER PRIMARY KEY, room TEXT NOT NULL, body TEXT NOT NULL);
  CREATE INDEX messages_of_room ON messages (room, id)`;
const SEND = "INSERT INTO messages (room, body) VALUES (?, ?)";
const LAST =
  "SELECT id, room, body FROM messages WHERE room = ? ORDER BY id DESC LIMIT 20";
const COUNT = "SELECT count(*) AS count FROM messages";
// What takes long is not the result: every pair of some messages is looked at.
const REPORT = `SELECT count(*) AS count FROM (SELECT id FROM messages LIMIT 1500) AS a, (SELECT id FROM messages LIMIT 1500) AS b
  WHERE (a.id * b.id) % 7 = 3`;

class Flatwater {
  static async open(path, durability) {
    const side = new Flatwater();
    side.db = await open(path, { durability });
    return side;
  }
  create = () => this.db.executeScript(MESSAGES);
  fill = (rows) => this.db.executeMany(SEND, rows);
  send = (room, body) => this.db.execute(SEND, [room, body]);
  last = (room) => this.db.query(LAST, [room]);
  report = () => this.db.query(REPORT);
  count = () => this.db.queryValue(COUNT);
  close = () => this.db.close();
}

/** The calls are awaited like the others, as in a program whose handlers are async functions. */
class BetterSqlite3 {
  static async open(path, durability) {
    const side = new BetterSqlite3();
    side.db = new Database(path);
    side.db.pragma("journal_mode = wal");
    side.db.pragma(`synchronous = ${durability}`);
    return side;
  }
  create = async () => {
    this.db.exec(MESSAGES);
    this.insert = this.db.prepare(SEND);
    this.select = this.db.prepare(LAST);
  };
  fill = async (rows) =>
    this.db.transaction(() => rows.forEach((row) => this.insert.run(row)))();
  send = async (room, body) => this.insert.run(room, body);
  last = async (room) => this.select.all(room);
  report = async () => this.db.prepare(REPORT).all();
  count = async () => this.db.prepare(COUNT).pluck().get();
  close = async () => this.db.close();
}

const SIDES = { Flatwater, "better-sqlite3": BetterSqlite3 };

/** How late a timer of 1 ms is, again and again, until `done`. */
async function holds(samples, done) {
  let isOver = false;
  const end = () => (isOver = true);
  done.then(end, end);
  while (!isOver) {
    const began = performance.now();
    await pause(1);
    samples.push(Math.max(performance.now() - began - 1, 0));
  }
}

/**
 * Reads a room or sends to it, at a pace that is the same on both sides. How long a request took is counted from when it was due, and
 * from its beginning if its timer fired early.
 */
async function member(side, number, figures) {
  const began = performance.now() + (EVERY_MS * number) / MEMBERS;
  const room = `room ${number % 5}`;
  for (let at = 0; at < ((SECONDS / TURNS) * 1000) / EVERY_MS; at++) {
    const due = began + at * EVERY_MS;
    await pause(Math.max(0, due - performance.now()));
    const from = Math.min(due, performance.now());
    if ((number + at) % (READS_PER_MESSAGE + 1) === 0) {
      await side.send(room, "so it goes");
      figures.sent++;
    } else {
      await side.last(room);
    }
    figures.requests.push(performance.now() - from);
  }
}

/** The members, and a report in every half of a second. */
async function traffic(side, figures) {
  const members = Promise.all(
    Array.from({ length: MEMBERS }, (_, number) =>
      member(side, number, figures),
    ),
  );
  let isOver = false;
  members.finally(() => (isOver = true)).catch(() => {});
  const reports = (async () => {
    while (!isOver) {
      const began = performance.now();
      await side.report();
      figures.reports.push(performance.now() - began);
      await pause(500);
    }
  })();
  await Promise.all([members, reports, holds(figures.holds, members)]);
}

async function insertsAtOnce(Side, path, durability, figures) {
  const side = await Side.open(path, durability);
  await side.create();
  const began = performance.now();
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) =>
        side.send("lobby", `message ${at}`),
      ),
    );
  }
  figures[durability].push(
    (ROUNDS * AT_ONCE * 1000) / (performance.now() - began),
  );
  expect(await side.count(), ROUNDS * AT_ONCE);
  await side.close();
}

function expect(found, sent) {
  if (found !== sent) {
    throw new Error(
      `${sent} messages were sent, and the database has ${found}`,
    );
  }
}

const quantile = (samples, at) => {
  const ordered =
    samples.toSorted?.((one, other) => one - other) ??
    [...samples].sort((one, other) => one - other);
  return ordered[Math.min(Math.floor(ordered.length * at), ordered.length - 1)];
};

function show(what, unit, of) {
  for (const [at, [name, figures]] of Object.entries(all).entries()) {
    const value = of(figures);
    const shown =
      unit === "/s" ? Math.round(value).toLocaleString("en") : value.toFixed(3);
    console.log(
      `${(at === 0 ? what : "").padEnd(52)}${name.padStart(15)}${shown.padStart(12)} ${unit}`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), "flatwater-compare-"));
const none = () => ({
  requests: [],
  reports: [],
  holds: [],
  normal: [],
  full: [],
  sent: 0,
});
const all = Object.fromEntries(
  Object.keys(SIDES).map((name) => [name, none()]),
);
try {
  const open = {};
  for (const [name, Side] of Object.entries(SIDES)) {
    open[name] = await Side.open(join(folder, `${name}.db`), "normal");
    await open[name].create();
    await open[name].fill(
      Array.from({ length: HISTORY }, (_, at) => [
        `room ${at % 5}`,
        `message ${at}`,
      ]),
    );
  }
  for (let turn = 0; turn < TURNS; turn++) {
    const names = Object.keys(SIDES);
    for (const name of turn % 2 === 0 ? names : names.reverse()) {
      await traffic(open[name], all[name]);
      for (const durability of ["normal", "full"]) {
        const path = join(folder, `${name}-${durability}-${turn}.db`);
        await insertsAtOnce(SIDES[name], path, durability, all[name]);
      }
    }
  }
  for (const [name, side] of Object.entries(open)) {
    expect(await side.count(), HISTORY + all[name].sent);
    await side.close();
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(
  `${MEMBERS} members of a chat and a report now and then, ${SECONDS} s for each library, in turns; every message was counted.\n`,
);
show("a request, from when it was due: p50", "ms", ({ requests }) =>
  quantile(requests, 0.5),
);
show("                                 p99", "ms", ({ requests }) =>
  quantile(requests, 0.99),
);
show("the event loop is held for: p99", "ms", ({ holds }) =>
  quantile(holds, 0.99),
);
show("                            longest", "ms", ({ holds }) =>
  quantile(holds, 1),
);
show("a report: p50", "ms", ({ reports }) => quantile(reports, 0.5));
show(`${AT_ONCE} inserts at once, synchronous = NORMAL`, "/s", ({ normal }) =>
  quantile(normal, 0.5),
);
show(
  `${" ".repeat(String(AT_ONCE).length)}                  synchronous = FULL`,
  "/s",
  ({ full }) => quantile(full, 0.5),
);
