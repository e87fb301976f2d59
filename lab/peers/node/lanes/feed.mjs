// feed: paging through 100,000 posts, 20 pages of 50, each continuing where the one before ended.

import assert from "../assert.mjs";

import { text, times } from "../data.mjs";
import { Timing } from "../measure.mjs";
import { Traffic } from "../traffic.mjs";

const CREATE =
  "CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER NOT NULL, created_at INTEGER NOT NULL, " +
  "body TEXT NOT NULL, like_count INTEGER NOT NULL)";
const INDEX = "CREATE INDEX posts_newest ON posts (created_at DESC, id DESC)";
const INSERT = "INSERT INTO posts (id, author, created_at, body, like_count) VALUES (?, ?, ?, ?, ?)";
const PAGE =
  "SELECT id, author, created_at, body, like_count FROM posts WHERE (created_at, id) < (?, ?) " +
  "ORDER BY created_at DESC, id DESC LIMIT 50";
const PER_PAGE = 50;
const PAGES = 20;
const CHUNK = 10_000;
const END = Number.MAX_SAFE_INTEGER;

function posts(count) {
  const traffic = new Traffic();
  return times(count, (i) => {
    const author = traffic.below(1000);
    const created_at = 1_700_000_000 + traffic.below(count);
    const body = `Post ${i} by author ${author} `.padEnd(120, ".");
    return { id: i + 1, author, created_at, body, like_count: traffic.below(500) };
  });
}

function touch(rows) {
  let sum = 0;
  for (const row of rows) sum += row.id + row.author + row.created_at + text(row.body) + row.like_count;
  return sum;
}

function walk(peer, pages, timing) {
  let after = { created_at: END, id: END };
  for (const { expected, last } of pages) {
    const sum = timing.time(() => touch(peer.query(PAGE, after.created_at, after.id)));
    assert.equal(sum, expected, `the page after post ${after.id} is not the expected one`);
    after = last;
  }
}

function run(trial) {
  const [count, runs] = [trial.size(100_000, 2_000), trial.size(50, 2)];
  const rows = posts(count);
  return trial.open((peer) => {
    peer.execute(CREATE);
    for (let at = 0; at < count; at += CHUNK) peer.many(INSERT, rows.slice(at, at + CHUNK).map(Object.values));
    peer.execute(INDEX);
    rows.sort((one, two) => two.created_at - one.created_at || two.id - one.id);
    const pages = times(PAGES, (at) => {
      const page = rows.slice(at * PER_PAGE, (at + 1) * PER_PAGE);
      return { expected: touch(page), last: page.at(-1) };
    });
    for (let warm = 0; warm < 2; warm++) walk(peer, pages, new Timing());
    const timing = new Timing();
    for (let i = 0; i < runs; i++) walk(peer, pages, timing);
    return timing.end(runs * PAGES);
  });
}

export const LANES = [
  { name: "feed", about: "20 pages of 50 posts out of 100,000, by keyset", tag: "release", group: "scenarios",
    ops_unit: "pages", run },
];
