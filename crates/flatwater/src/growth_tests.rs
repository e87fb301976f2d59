//! How the work of pure functions grows with their input: tests.
//!
//! Owns: for each of them an input that can be made larger, and the check that the steps grow with it and not faster.
//! Invariant: steps are counted, and no time is measured. Leaves out: counting (`growth_counter`), and what the functions return.

use std::collections::HashMap;
use std::sync::Arc;

use flatwater_sqlite::{AuthEvent, ColumnOrigin, ColumnSource, Op, Program};
use rusqlite::ffi;
use rusqlite::types::ValueRef;

use crate::Params;
use crate::connection::learn::schema_tables::reads_view_that_joins_by_name;
use crate::connection::run::hidden_values::hide_values;
use crate::connection::run::hints::most_alike;
use crate::migrations::{Applied, Migrations, next};
use flatwater_base::growth_counter::counted::{grows_with, steps};
use flatwater_base::values::block::Block;
use flatwater_base::values::column::ColumnNames;
use flatwater_base::values::difference::Difference;
use flatwater_base::values::row::Rows;
use flatwater_sql::dependencies::index::Index;
use flatwater_sql::dependencies::reads::Reads;
use flatwater_sql::dependencies::tables::{Kind, PrimaryKeys, Table, Tables};
use flatwater_sql::text::may_replace;
use flatwater_sql::tokens::{
    has_aborting_conflict_clause, has_in_with_one_parameter, looks_like_a_write, may_call, may_call_any, names,
    without_literals,
};

const KIB: usize = 1024;

fn hide(message: &str, sql: &str, values: &[String]) {
    hide_values(message, sql, Params::positional(values).unwrap().row());
}

#[test]
fn hiding_values_takes_a_step_for_each_byte_of_the_values_and_of_the_sql() {
    for unit in ["a", "ab", "0123456789abcdef", "\u{fc}"] {
        let text = |kib: usize| unit.repeat(kib * KIB / unit.len());
        grows_with("a value that is quoted whole", 16, |kib| hide(&text(kib), "SELECT ?", &[text(kib)]));
        grows_with("a value", 16, |kib| hide("no such column: x", "SELECT ?", &[text(kib)]));
        grows_with("the number of values", 16, |kib| hide(&text(1), "SELECT ?", &vec![text(1); kib]));
        grows_with("the SQL", 16, |kib| hide(&text(1), &text(kib), &[text(1)]));
        grows_with("texts in quotes", 16, |kib| hide(&"'a'\"b\"".repeat(kib * KIB), "SELECT ?", &[text(kib)]));
    }
    let numbers = |kib: usize| (0..kib * KIB / 8).map(|number| format!("{number:08}")).collect::<String>();
    let message = |kib: usize| steps(|| hide(&numbers(kib), "SELECT ?", &[numbers(16)]));
    assert_eq!(message(1), message(64), "the message");
    grows_with("numbers", 256, |count| hide_values("1234", "", Params::positional(0..count).unwrap().row()));
}

#[test]
fn looking_for_a_near_name_takes_a_step_for_each_letter_of_all_names() {
    let name = |length: usize| move |number: usize| (format!("{number:0length$}"), number);
    grows_with("the number of names", 64, |count| most_alike(&"x".repeat(16), (0..count).map(name(16))));
    let long = |length: usize| steps(|| most_alike(&"x".repeat(length), (0..64).map(name(length))));
    assert!(long(32) > 0 && long(1000) == 0, "the length of names");
}

#[test]
fn reading_a_text_takes_a_step_for_each_of_its_bytes() {
    for unit in
        ["a IN (? ", "'a''b' ", "/* a ", "-- a\n", "random /* ", "(((", "\"a\" [b] `c` ", "OR x ", "\u{fc}\u{1f980} "]
    {
        let all = |size: usize| {
            let sql = unit.repeat(size);
            let functions = (0..size).map(|number| format!("f{number}")).chain(["random".into()]).collect();
            has_in_with_one_parameter(&sql);
            has_aborting_conflict_clause(&sql);
            looks_like_a_write(&format!("WITH {sql}"));
            may_call(&sql, "random", false);
            may_call_any(&sql, &functions);
            may_replace(&sql);
            without_literals(&sql, |_| ());
            names(&sql).count()
        };
        grows_with(unit, 256, all);
    }
}

#[test]
fn finding_columns_by_name_takes_a_step_for_each() {
    let names = |count: usize| {
        let names: Vec<Box<str>> = (0..count).map(|name| format!("Column{name}").into()).collect();
        ColumnNames::new(names, Vec::new(), "".into())
    };
    grows_with("all columns", 64, |count| {
        let names = names(count);
        (0..count).for_each(|name| assert_eq!(names.find(&*format!("column{name}")), Ok(name)));
    });
}

fn rows(count: usize, value: impl Fn(usize) -> i64) -> Rows {
    let mut block = Block::default();
    (0..count).for_each(|row| block.push(ValueRef::Integer(value(row))));
    Rows { names: ColumnNames::new(vec!["a".into()], vec![ColumnSource::default()], "".into()), block }
}

#[test]
fn comparing_results_takes_a_step_for_each_row() {
    grows_with("rows in another order", 256, |count| {
        let reversed = rows(count, |row| (count - row).cast_signed() as i64);
        Difference::between(&rows(count, |row| row as i64), &reversed, &[0])
    });
}

fn op(opcode: &str, p1: i32, p2: i32, p3: i32) -> Op {
    Op { opcode: opcode.into(), p1, p2, p3, p4: None, p5: 0 }
}

/// A query that looks a row of each of many tables up, each of which has a virtual table beside it.
fn many_tables(count: usize) -> (Vec<AuthEvent>, Program, Tables) {
    let (mut events, mut program, mut tables) = (Vec::new(), Program::new(), HashMap::new());
    for number in 0..i32::try_from(count).unwrap() {
        for (name, kind) in [(format!("t{number}"), Kind::Rowid), (format!("f{number}"), Kind::Shadowed)] {
            tables.insert(Box::from(&*name), Table::of(kind, number));
            events.push(AuthEvent {
                action: ffi::SQLITE_READ,
                first: Some(name.into()),
                second: Some("a".into()),
                database: None,
                accessor: None,
            });
        }
        program.extend([op("OpenRead", number, number, 0), op("Variable", number + 1, number, 0)]);
        program.push(op("SeekRowid", number, 0, number));
    }
    (events, program, Tables { tables, ..Tables::default() })
}

#[test]
fn deriving_what_a_query_reads_takes_a_step_for_each_instruction_and_table() {
    grows_with("tables", 16, |count| {
        let (events, program, tables) = many_tables(count);
        let Ok(Reads::Tables(reads)) = Reads::of(&events, &[program], &tables, true) else { panic!("a TEMP table") };
        assert_eq!(reads.len(), 2 * count);
    });
}

#[test]
fn a_chain_of_views_is_read_once() {
    grows_with("views", 64, |count| {
        let view =
            |number: usize| (format!("v{number}"), format!("CREATE VIEW v{number} AS SELECT * FROM V{}", number + 1));
        let sql = (0..count).map(|number| format!("SELECT * FROM v{number}")).collect::<Vec<_>>().join(" UNION ");
        assert!(!reads_view_that_joins_by_name(&sql, (0..count).rev().map(view).collect()));
    });
}

#[test]
fn live_queries_come_are_invalidated_and_go_in_a_step_each() {
    let reads = || {
        let (events, program, tables) = many_tables(1);
        Arc::new(Reads::of(&events, &[program], &tables, false).unwrap())
    };
    grows_with("texts that read one table", 64, |count| {
        let (mut index, all) = (Index::default(), std::iter::repeat_with(reads).take(count).collect::<Vec<_>>());
        all.iter().enumerate().for_each(|(id, reads)| index.add(id as u64, reads, |_, _| None));
        all.iter().enumerate().for_each(|(id, reads)| index.remove(id as u64, reads, |_, _| None));
    });
    grows_with("queries for one row", 64, |count| {
        let (mut index, reads) = (Index::default(), reads());
        (0..count).for_each(|id| index.add(id as u64, &reads, |_, _| Some(vec![7, 7])));
        (0..count).for_each(|id| index.remove(id as u64, &reads, |_, _| Some(vec![7, 7])));
    });
}

#[test]
fn the_key_of_a_result_takes_a_step_for_each_column() {
    grows_with("columns of a key", 64, |count| {
        let names: Vec<Box<str>> = (0..count).map(|name| format!("c{name}").into()).collect();
        let table = Table { primary_key: names.clone(), ..Table::of(Kind::WithoutRowid, 2) };
        let keys = PrimaryKeys::of(&Tables { tables: [("t".into(), table)].into(), ..Tables::default() });
        let origin = |column: &str| ColumnOrigin { database: "main".into(), table: "t".into(), column: column.into() };
        let sources = names.iter().map(|name| ColumnSource { declared_type: None, origin: Some(origin(name)) });
        assert_eq!(keys.of_result(&sources.collect::<Vec<_>>()).unwrap().len(), count);
    });
}

#[test]
fn the_next_migration_takes_a_step_for_each() {
    grows_with("migrations", 64, |count| {
        let list = Migrations::new((1..=count).map(|number| (format!("{number:06}_a"), "SELECT 1")));
        let steps = list.steps().unwrap();
        let applied = steps.iter().map(|step| Applied {
            version: step.version,
            name: step.name.clone(),
            checksum: step.checksum.clone(),
        });
        assert_eq!(next(steps, &applied.collect::<Vec<_>>(), false), Ok(None));
    });
}
