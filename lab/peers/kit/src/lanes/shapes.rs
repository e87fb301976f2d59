//! shapes_{narrow,wide,text,numeric,nullable}: all of 1000 rows of one shape, every field touched.
//!
//! A sample is one query with its consumption.

use std::sync::Arc;

use anyhow::{Result, ensure};

use crate::data::{self, INSERT_WIDE, SELECT_WIDE, WIDE};
use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::Peer;
use crate::record::{Record, Wide, sum_of};
use crate::value::{Rows, Value};

const ROWS: usize = 1000;

/// A table, how a row of it is written and read, and its rows.
struct Shape<R> {
    create: &'static str,
    insert: &'static str,
    select: &'static str,
    row: fn(usize) -> (R, Vec<Value<'static>>),
}

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    vec![
        lane::<P, _>("narrow", "2 columns: integers", NARROW),
        lane::<P, _>("wide", "20 columns: integers, reals and texts", TWENTY),
        lane::<P, _>("text", "7 columns, four of them texts of 70 to 200 characters", TEXT),
        lane::<P, _>("numeric", "6 columns: integers, reals and a short text", NUMERIC),
        lane::<P, _>("nullable", "6 columns, about half of the fields NULL", NULLABLE),
    ]
}

fn lane<P: Peer, R: Record>(word: &str, columns: &str, shape: Shape<R>) -> Lane {
    let about = format!("1000 rows of {columns}");
    Lane::new("reads", format!("shapes_{word}"), about, "queries", move |trial| run::<P, R>(trial, shape))
        .release()
        .reads_only()
}

async fn run<P: Peer, R: Record>(trial: Trial, shape: Shape<R>) -> Result<Measured> {
    let count = trial.size(500, 5);
    let peer = trial.open::<P>().await?;
    peer.execute(shape.create, &[]).await?;
    let (records, rows): (Vec<R>, Vec<_>) = (0..ROWS).map(shape.row).unzip();
    let rows: Rows = Arc::new(rows);
    peer.many(shape.insert, &rows).await?;
    peer.hold().await?;
    data::expect_rows(&peer, shape.select, &records).await?;
    let expected = sum_of(&records);
    let mut timing = Timing::begin()?;
    for _ in 0..count {
        let sum = timing.latencies.query::<P, R>(&peer, shape.select, &[]).await?;
        ensure!(sum == expected, "the rows are not those that were written");
    }
    let measured = timing.end(count as u64)?;
    peer.close().await?;
    Ok(measured)
}

const NARROW: Shape<(i64, i64)> = Shape {
    create: "CREATE TABLE narrow (id INTEGER PRIMARY KEY, n INTEGER)",
    insert: "INSERT INTO narrow VALUES (?, ?)",
    select: "SELECT id, n FROM narrow",
    row: |i| {
        let i = i as i64;
        ((i, i * 7), vec![i.into(), (i * 7).into()])
    },
};

const TWENTY: Shape<Wide<{ data::WIDE_COLUMNS }>> = Shape {
    create: WIDE,
    insert: INSERT_WIDE,
    select: SELECT_WIDE,
    row: |i| (Wide(data::wide_row(i)), data::wide_row(i).to_vec()),
};

const TEXT: Shape<(i64, String, String, String, String, f64, i64)> = Shape {
    create: "CREATE TABLE text (id INTEGER PRIMARY KEY, title TEXT, body TEXT, summary TEXT, notes TEXT, r REAL, n INTEGER)",
    insert: "INSERT INTO text VALUES (?, ?, ?, ?, ?, ?, ?)",
    select: "SELECT id, title, body, summary, notes, r, n FROM text",
    row: |i| {
        let text = |word: &str, length| format!("{:.<length$}", format!("The {word} of row {i} "));
        let texts = [("title", 70), ("body", 200), ("summary", 90), ("notes", 90)].map(|(word, at)| text(word, at));
        let mut row: Vec<Value<'_>> = vec![(i as i64).into()];
        row.extend(texts.clone().map(Value::from));
        row.extend([data::value(i).into(), (i as i64 * 3).into()]);
        let [title, body, summary, notes] = texts;
        ((i as i64, title, body, summary, notes, data::value(i), i as i64 * 3), row)
    },
};

const NUMERIC: Shape<(i64, i64, f64, f64, i64, String)> = Shape {
    create: "CREATE TABLE numeric (a INTEGER, b INTEGER, c REAL, d REAL, e INTEGER, f TEXT)",
    insert: "INSERT INTO numeric VALUES (?, ?, ?, ?, ?, ?)",
    select: "SELECT a, b, c, d, e, f FROM numeric",
    row: |i| {
        let (n, r, name) = (i as i64, i as f64, format!("n {i}"));
        let row = vec![
            (n * 7).into(),
            (n * 13).into(),
            (r * 0.333).into(),
            (r * 1.414).into(),
            (n * 99).into(),
            name.clone().into(),
        ];
        ((n * 7, n * 13, r * 0.333, r * 1.414, n * 99, name), row)
    },
};

type Nullable = (Option<String>, Option<f64>, Option<String>, Option<i64>, Option<String>, Option<f64>);

const NULLABLE: Shape<Nullable> = Shape {
    create: "CREATE TABLE nullable (name TEXT, value REAL, tag TEXT, count INTEGER, note TEXT, score REAL)",
    insert: "INSERT INTO nullable VALUES (?, ?, ?, ?, ?, ?)",
    select: "SELECT name, value, tag, count, note, score FROM nullable",
    row: |i| {
        let name = (i % 2 == 0).then(|| format!("name {i}"));
        let value = (i % 3 == 0).then_some(i as f64 * 1.5);
        let tag = (i % 4 == 0).then(|| format!("tag {}", i % 7));
        let count = (i % 2 == 1).then_some(i as i64);
        let note = (i % 5 == 0).then(|| format!("a note on row {i}"));
        let score = (i % 3 != 0).then_some(i as f64 * 0.5);
        let row = vec![
            name.clone().into(),
            value.into(),
            tag.clone().into(),
            count.into(),
            note.clone().into(),
            score.into(),
        ];
        ((name, value, tag, count, note, score), row)
    },
};
