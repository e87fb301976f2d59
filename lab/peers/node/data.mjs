// The tables and rows of the lanes, as kit/src/data.rs defines them.
//
// Owns: table definitions, statements and rows that several lanes use. Leaves out: traffic drawn at random.

import assert from "./assert.mjs";

export const T = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL, value REAL NOT NULL)";
export const INSERT_T = "INSERT INTO t (name, value) VALUES (?, ?)";
export const DELETE_T = "DELETE FROM t";

export const ITEMS =
  "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, " +
  "value REAL, category TEXT NOT NULL, created_at TEXT NOT NULL)";
export const INSERT_ITEM =
  "INSERT INTO items (name, description, value, category, created_at) VALUES (?, ?, ?, ?, ?)";
export const SELECT_ITEMS = "SELECT id, name, description, value, category, created_at FROM items";
export const SELECT_ITEM =
  "SELECT id, name, description, value, category, created_at FROM items WHERE id = ?";

export const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

const named = (letter, count) => times(count, (c) => letter + c);
const WIDE_COLUMNS = [...named("i", 7), ...named("r", 6), ...named("s", 7)];
const TYPES = { i: "INTEGER", r: "REAL", s: "TEXT" };
export const WIDE =
  `CREATE TABLE wide (id INTEGER PRIMARY KEY, ${WIDE_COLUMNS.map((name) => `${name} ${TYPES[name[0]]}`).join(", ")})`;
export const INSERT_WIDE =
  `INSERT INTO wide (${WIDE_COLUMNS.join(", ")}) VALUES (${WIDE_COLUMNS.map(() => "?").join(", ")})`;
export const SELECT_WIDE = `SELECT ${WIDE_COLUMNS.join(", ")} FROM wide ORDER BY id`;

export const tRow = (i) => ({ name: `item_${i}`, value: i * 1.5 });
export const tRows = (count) => times(count, tRow);

/** Row `i` of `items` with its id. */
export function item(i) {
  return {
    id: i + 1,
    name: `Item ${i}`,
    description: `A description of item ${i} that is as long as such texts are `.padEnd(85, "."),
    value: i * 1.5,
    category: `category_${i % 10}`,
    created_at: `2026-01-${String((i % 9) + 1).padStart(2, "0")}T12:00:00.000Z`,
  };
}
export const items = (count) => times(count, item);

export function wideRow(i) {
  const cell = (c) => (c < 7 ? i + c : c < 13 ? i * 0.1 + c : `str_${i + c}`);
  return Object.fromEntries(WIDE_COLUMNS.map((name, c) => [name, cell(c)]));
}

/** Touches every field of rows of `items`: what a lane expects of rows whose content it knows. */
export function touchItems(rows) {
  let sum = 0;
  for (const row of rows) {
    sum += row.id + text(row.name) + text(row.description) + row.value + text(row.category) + text(row.created_at);
  }
  return sum;
}

/** A text's length and ends. */
export function text(it) {
  return it.length + it.charCodeAt(0) * 256 + it.charCodeAt(it.length - 1) * 65536;
}

/** The rows that a query answers are the expected ones in order. */
export function expectRows(peer, sql, expected) {
  assert.deepEqual(peer.query(sql), expected, `the rows of ${sql} are not the expected ones`);
}

/** `t` holds exactly the rows `0..count`, whatever order they were written in. */
export function expectT(peer, count) {
  expectRows(peer, "SELECT name, value FROM t ORDER BY value", tRows(count));
}

/** Makes `items` and its first `count` rows. */
export function fillItems(peer, count) {
  peer.execute(ITEMS);
  const rows = items(count).map(({ id: _, ...row }) => Object.values(row));
  assert.equal(peer.many(INSERT_ITEM, rows), count, "rows were not written");
}
