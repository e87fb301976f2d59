// shapes_{narrow,wide,text,numeric,nullable}: all of 1000 rows of one shape, every field touched.

import assert from "../assert.mjs";

import { INSERT_WIDE, SELECT_WIDE, WIDE, expectRows, text, times, wideRow } from "../data.mjs";
import { Timing } from "../measure.mjs";

const ROWS = 1000;

/** Touches every field, whatever it is. */
function touch(rows) {
  let sum = 0;
  for (const row of rows) {
    for (const column in row) {
      const cell = row[column];
      sum += cell === null ? 1 : typeof cell === "string" ? text(cell) : cell;
    }
  }
  return sum;
}

function run(trial, { create, insert, select, row }) {
  const count = trial.size(500, 5);
  return trial.open((peer) => {
    peer.execute(create);
    const rows = times(ROWS, row);
    peer.many(insert, rows.map(Object.values));
    expectRows(peer, select, rows);
    const expected = touch(rows);
    const timing = new Timing();
    for (let i = 0; i < count; i++) {
      const sum = timing.time(() => touch(peer.query(select)));
      assert.equal(sum, expected, "the rows are not those that were written");
    }
    return timing.end(count);
  });
}

const padded = (word, i, length) => `The ${word} of row ${i} `.padEnd(length, ".");

const SHAPES = {
  narrow: {
    columns: "2 columns: integers",
    create: "CREATE TABLE narrow (id INTEGER PRIMARY KEY, n INTEGER)",
    insert: "INSERT INTO narrow VALUES (?, ?)",
    select: "SELECT id, n FROM narrow",
    row: (i) => ({ id: i, n: i * 7 }),
  },
  wide: {
    columns: "20 columns: integers, reals and texts",
    create: WIDE,
    insert: INSERT_WIDE,
    select: SELECT_WIDE,
    row: wideRow,
  },
  text: {
    columns: "7 columns, four of them texts of 70 to 200 characters",
    create: "CREATE TABLE text (id INTEGER PRIMARY KEY, title TEXT, body TEXT, summary TEXT, notes TEXT, r REAL, " +
      "n INTEGER)",
    insert: "INSERT INTO text VALUES (?, ?, ?, ?, ?, ?, ?)",
    select: "SELECT id, title, body, summary, notes, r, n FROM text",
    row: (i) => ({
      id: i,
      title: padded("title", i, 70),
      body: padded("body", i, 200),
      summary: padded("summary", i, 90),
      notes: padded("notes", i, 90),
      r: i * 1.5,
      n: i * 3,
    }),
  },
  numeric: {
    columns: "6 columns: integers, reals and a short text",
    create: "CREATE TABLE numeric (a INTEGER, b INTEGER, c REAL, d REAL, e INTEGER, f TEXT)",
    insert: "INSERT INTO numeric VALUES (?, ?, ?, ?, ?, ?)",
    select: "SELECT a, b, c, d, e, f FROM numeric",
    row: (i) => ({ a: i * 7, b: i * 13, c: i * 0.333, d: i * 1.414, e: i * 99, f: `n ${i}` }),
  },
  nullable: {
    columns: "6 columns, about half of the fields NULL",
    create: "CREATE TABLE nullable (name TEXT, value REAL, tag TEXT, count INTEGER, note TEXT, score REAL)",
    insert: "INSERT INTO nullable VALUES (?, ?, ?, ?, ?, ?)",
    select: "SELECT name, value, tag, count, note, score FROM nullable",
    row: (i) => ({
      name: i % 2 === 0 ? `name ${i}` : null,
      value: i % 3 === 0 ? i * 1.5 : null,
      tag: i % 4 === 0 ? `tag ${i % 7}` : null,
      count: i % 2 === 1 ? i : null,
      note: i % 5 === 0 ? `a note on row ${i}` : null,
      score: i % 3 !== 0 ? i * 0.5 : null,
    }),
  },
};

export const LANES = Object.entries(SHAPES).map(([word, shape]) => ({
  name: `shapes_${word}`,
  about: `1000 rows of ${shape.columns}`,
  tag: "release",
  group: "reads",
  ops_unit: "queries",
  run: (trial) => run(trial, shape),
}));
