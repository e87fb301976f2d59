//! What is asked of each file: queries, which are live queries too, and the PRAGMAs about its tables. Plain SQLite says
//! what is right.
//!
//! An answer is compared as text. Leaves out: who asks, and when.

use flatwater::rusqlite::types::Value;
use flatwater::{Row, Rows};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::setup::{EXTRA, PAIRED, Setup, schema};
use crate::finding::Finding;

/// How many PRAGMAs are compared in each turn.
const PRAGMAS: usize = 60;
/// How many rows are named at most where answers differ.
const SHOWN: usize = 12;

/// What all must answer while nothing is written.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Expected {
    /// In the order of `queries`.
    pub(super) answers: Vec<String>,
    pub(super) pragmas: Vec<(String, String)>,
    /// What is done first may bring to light what the others miss.
    pub(super) order: Vec<Step>,
}

/// One way to answer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Step {
    Reads,
    Live,
    Pragmas,
}

impl Expected {
    pub(super) fn of(setup: &Setup, rng: &mut StdRng) -> Result<Self, Finding> {
        let plain = setup.plain()?;
        let mut order = vec![Step::Reads, Step::Live, Step::Pragmas];
        order.shuffle(rng);
        let ask = |sql: &String| Ok::<_, Finding>(text(sql, asked(&plain, sql)?));
        let some = pragmas(setup).sample(rng, PRAGMAS).cloned().collect::<Vec<_>>();
        Ok(Self {
            answers: queries(setup).iter().map(|(_, sql)| ask(sql)).collect::<Result<_, _>>()?,
            pragmas: some.into_iter().map(|sql| Ok((ask(&sql)?, sql))).map(flipped).collect::<Result<_, Finding>>()?,
            order,
        })
    }
}

fn flipped(told: Result<(String, String), Finding>) -> Result<(String, String), Finding> {
    told.map(|(answer, sql)| (sql, answer))
}

/// Returns the queries of all files, each with the file that it is about.
pub(super) fn queries(setup: &Setup) -> Vec<(usize, String)> {
    (0..setup.files).flat_map(|file| of_file(file).into_iter().map(move |sql| (file, sql))).collect()
}

fn of_file(file: usize) -> Vec<String> {
    let s = schema(file);
    let mut all = vec![
        format!("SELECT n FROM {s}.counter WHERE id = 1"),
        pairs(file),
        format!("SELECT id, n, body FROM {s}.item ORDER BY id"),
        format!("SELECT count(*) FROM {s}.item"),
        format!("SELECT type, name, tbl_name, sql FROM {s}.sqlite_schema ORDER BY name"),
        format!("SELECT name, \"unique\" FROM pragma_index_list('item', '{s}') ORDER BY name"),
    ];
    if file > 0 {
        all.push(format!("SELECT m.id, b.id FROM main.item AS m JOIN {s}.item AS b USING (n) ORDER BY 1, 2"));
    }
    all
}

/// A query whose result says whether the rows of `pair` are seen whole.
pub(super) fn pairs(file: usize) -> String {
    format!("SELECT count(*), count(DISTINCT n), min(n) FROM {}.pair", schema(file))
}

fn pragmas(setup: &Setup) -> Vec<String> {
    let tables = ["item".to_owned(), "pair".to_owned()].into_iter().chain((0..EXTRA).map(|n| format!("extra_{n}")));
    let tables: Vec<_> = tables.collect();
    let made = |table: &str| [1, 2].map(|n| format!("sqlite_autoindex_{table}_{n}"));
    let indexes: Vec<_> =
        tables.iter().flat_map(|table| made(table)).chain((0..EXTRA).map(|n| format!("item_{n}"))).collect();
    let mut all = Vec::new();
    for file in 0..setup.files {
        let s = schema(file);
        let mut ask = |pragmas: &[&str], names: &[String]| {
            for name in names {
                all.extend(pragmas.iter().map(|pragma| format!("PRAGMA {s}.{pragma}('{name}')")));
            }
        };
        ask(&["index_list", "foreign_key_list", "table_info", "table_xinfo"], &tables);
        ask(&["index_info", "index_xinfo"], &indexes);
    }
    all
}

type Answer = Vec<Vec<Value>>;

fn asked(plain: &Connection, sql: &str) -> Result<Answer, Finding> {
    let mut statement = plain.prepare(sql)?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| (0..columns).map(|at| row.get(at)).collect())?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Returns the text of a result of Flatwater.
pub(super) fn text_of(sql: &str, rows: &Rows) -> String {
    let values = |row: Row<'_>| row.values().map(|value| Value::try_from(value).expect("texts are UTF-8")).collect();
    text(sql, rows.iter().map(values).collect())
}

/// The order in which SQLite lists the indexes of a table depends on whether a connection has made them or read them, so
/// the answers of PRAGMAs are compared without the order and without its number.
fn text(sql: &str, mut rows: Answer) -> String {
    if sql.starts_with("PRAGMA") {
        if sql.contains("index_list") {
            rows.iter_mut().for_each(|row| drop(row.drain(..1)));
        }
        let mut lines: Vec<_> = rows.iter().map(|row| format!("{row:?}")).collect();
        lines.sort();
        return lines.join("\n");
    }
    rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>().join("\n")
}

/// Returns a finding if a result, as text, is half of what was written together.
pub(super) fn is_whole(sql: &str, answer: &str) -> Result<(), Finding> {
    if sql.ends_with(".pair") && !answer.starts_with(&format!("[Integer({PAIRED}), Integer(1), ")) {
        return Err(Finding::new(format!("half of a write is seen: {sql} answers {answer}")));
    }
    Ok(())
}

/// Returns a finding that says what differs.
pub(super) fn differs(what: &str, sql: &str, found: &str, expected: &str) -> Finding {
    let short = |text: &str| text.lines().take(SHOWN).collect::<Vec<_>>().join("\n");
    Finding::new(what).with_history(format!("{sql}\nanswers\n{}\nand plain SQLite\n{}", short(found), short(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_write_is_found_and_the_order_of_indexes_is_not_compared() {
        let sql = pairs(1);
        is_whole(&sql, "[Integer(8), Integer(1), Integer(3)]").unwrap();
        assert!(is_whole(&sql, "[Integer(8), Integer(2), Integer(3)]").is_err());
        let rows =
            |values: [i64; 4]| vec![vec![values[0].into(), values[1].into()], vec![values[2].into(), values[3].into()]];
        let list = "PRAGMA main.index_list('item')";
        assert_eq!(text(list, rows([0, 7, 1, 8])), text(list, rows([0, 8, 1, 7])));
        assert_ne!(text(list, rows([0, 7, 1, 8])), text(list, rows([0, 8, 1, 8])));
        assert_ne!(text(&sql, rows([0, 7, 1, 8])), text(&sql, rows([1, 8, 0, 7])));
    }
}
