//! Random histories of writes: whoever applies the changes of rows to the full result has what a fresh run returns.
//!
//! The writes, and the variables that set the seed and the number of histories, are those of `random`.

use std::cell::Cell;
use std::collections::BTreeMap;

use flatwater::live::Change;
use flatwater::{Params, Row, Rows};
use futures_util::FutureExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::queries::HANGS;
use super::random::{DEFINITIONS, SCHEMA, WRITES, finish_writes, histories, pick, spelled, values, write};
use crate::place::Place;
use crate::support::TestFile;

/// Each with the columns that are its key, as long as the schema has the table.
const QUERIES: &[(&str, &[usize])] = &[
    ("SELECT * FROM t", &[0]),
    ("SELECT a, c, id FROM t WHERE b > ? ORDER BY a", &[2]),
    ("SELECT rowid, a FROM t WHERE id = ?", &[0]),
    ("SELECT id, b FROM t ORDER BY b DESC, id LIMIT 3", &[0]),
    ("SELECT * FROM v", &[0]),
    ("SELECT n, v, k FROM w", &[2]),
    ("SELECT * FROM g", &[0]),
    ("SELECT rowid, * FROM plain", &[0]),
    ("SELECT rowid, n FROM log WHERE n > ?", &[0]),
    ("SELECT rowid, body FROM f", &[0]),
    ("SELECT * FROM sometimes", &[0]),
    ("SELECT p.id, count(c.id) FROM p LEFT JOIN c ON c.p = p.id GROUP BY p.id", &[0]),
    ("SELECT c.id, p.a FROM c JOIN p ON c.q = p.id", &[0]),
    ("SELECT p.id, c.q FROM p LEFT JOIN c ON c.p = p.id", &[0]),
    ("SELECT p.id, c.id, c.q FROM p LEFT JOIN c ON c.p = p.id", &[0, 1]),
    ("SELECT x.id, y.id, y.a FROM t x JOIN t y ON x.a = y.b", &[0, 1]),
    ("SELECT id, a FROM t UNION ALL SELECT id, a FROM p", &[0]),
];

type Key = Vec<String>;

/// What a consumer has: its columns, and its rows by key; or the error's message.
type Model = Result<(Vec<String>, BTreeMap<Key, String>), String>;

const REPEATED: &str = "two rows of the result have the same key";

fn shown(row: &Row<'_>) -> String {
    format!("{:?}", row.values().collect::<Vec<_>>())
}

fn key(row: &Row<'_>, columns: &[usize]) -> Key {
    columns.iter().map(|column| format!("{:?}", row.value(*column).unwrap())).collect()
}

fn model(rows: &Rows, columns: &[usize]) -> Model {
    let by_key: BTreeMap<_, _> = rows.iter().map(|row| (key(&row, columns), shown(&row))).collect();
    if by_key.len() < rows.len() {
        return Err(REPEATED.to_owned());
    }
    Ok((rows.columns().map(str::to_owned).collect(), by_key))
}

/// Applies a change. Each row must be what the consumer has.
fn apply(model: &mut Option<Model>, change: flatwater::Result<Change>, columns: &[usize]) -> Result<(), String> {
    let rows = match change {
        Err(error) if error.message().starts_with(REPEATED) => {
            let before = model.replace(Err(REPEATED.to_owned()));
            return if before == *model { Err("the same error twice".to_owned()) } else { Ok(()) };
        }
        Err(error) => {
            *model = Some(Err(error.message().to_owned()));
            return Ok(());
        }
        Ok(Change::Full(rows)) => {
            *model = Some(self::model(&rows, columns));
            return if matches!(model, Some(Ok(_))) { Ok(()) } else { Err("keys repeat".to_owned()) };
        }
        Ok(Change::Rows(rows)) => rows,
    };
    let Some(Ok((_, kept))) = model else { return Err(format!("{rows:?} after {model:?}")) };
    if rows.inserted().len() + rows.updated().len() + rows.deleted().len() == 0 {
        return Err("an empty change".to_owned());
    }
    for old in rows.deleted() {
        if kept.remove(&key(&old, columns)).as_ref() != Some(&shown(&old)) {
            return Err(format!("{old:?} was deleted from {kept:?}"));
        }
    }
    for both in rows.updated() {
        let (old, new) = (shown(&both.old), shown(&both.new));
        let before = kept.insert(key(&both.new, columns), new.clone());
        if before.as_ref() != Some(&old) || old == new {
            return Err(format!("{old} became {new} and was {before:?}"));
        }
    }
    for new in rows.inserted() {
        if let Some(before) = kept.insert(key(&new, columns), shown(&new)) {
            return Err(format!("{new:?} was inserted over {before}"));
        }
    }
    match self::model(rows.result(), columns) {
        Ok((_, all)) if all == *kept => Ok(()),
        other => Err(format!("{kept:?} and not {other:?}")),
    }
}

async fn history(place: &Place, seed: u64, differences: &Cell<u64>) {
    let mut random = StdRng::seed_from_u64(seed);
    let db = place.open().await;
    db.execute_script(SCHEMA).await.unwrap();
    let plain = place.file().map(TestFile::plain);
    let mut lives = Vec::new();
    for step in 0..60 {
        if step < 12 {
            let (sql, columns) = QUERIES[random.random_range(0..QUERIES.len())];
            let params = values(&mut random, sql);
            let changes = db.live(sql, Params::positional(params.clone())).changes();
            lives.push((sql, columns, params, changes, None::<Model>));
        }
        match random.random_range(0..12) {
            0 if plain.is_some() => {
                let texts = if random.random_range(0..4) == 0 { DEFINITIONS } else { WRITES };
                let sql = pick(&mut random, texts);
                let sql = spelled(sql, &values(&mut random, sql));
                let _ = plain.as_ref().map(|plain| plain.execute_batch(&sql));
            }
            _ => write(&db, &mut random).await,
        }
        for (sql, columns, _, changes, model) in &mut lives {
            // Some consumers are late.
            while random.random_range(0..3) > 0
                && let Some(Some(change)) = changes.next().now_or_never()
            {
                let is_difference = matches!(change, Ok(Change::Rows(_)));
                differences.set(differences.get() + u64::from(is_difference));
                apply(model, change, columns).unwrap_or_else(|fault| panic!("seed {seed}: {sql}: {fault}"));
            }
        }
    }
    finish_writes(&db).await;
    for (sql, columns, params, changes, last) in &mut lives {
        let fresh = db.query(*sql, Params::positional(params.clone())).await;
        let fresh = fresh.map_or_else(|error| Err(error.message().to_owned()), |rows| model(&rows, columns));
        while last.as_ref() != Some(&fresh) {
            let told = format!("seed {seed}: {sql} {params:?} told {last:?} and not {fresh:?}");
            let next = tokio::time::timeout(HANGS, changes.next()).await.expect(&told);
            apply(last, next.expect(&told), columns).unwrap_or_else(|fault| panic!("{told}: {fault}"));
        }
    }
    drop(lives);
    db.close().await.unwrap();
}

fn check(place: fn() -> Place, number: u64) {
    let differences = Cell::new(0);
    histories(place, number, async |place: &Place, seed| history(place, seed, &differences).await);
    assert!(differences.get() > 0, "there were full results only");
}

#[test]
fn the_changes_applied_to_the_full_result_are_what_a_fresh_run_returns() {
    check(Place::on_file, 60);
}

#[test]
fn the_changes_applied_in_memory_are_what_a_fresh_run_returns() {
    check(Place::in_memory, 30);
}
