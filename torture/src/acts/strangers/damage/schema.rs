//! Hostile schemas: rows of `sqlite_schema` that no CREATE statement produces, and damaged shadow tables of extensions.
//!
//! Plain SQLite writes them into a copy, so each page of the file is sound.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use rusqlite::Connection;

use super::{Damage, Target};
use crate::acts::strangers::ask::Ask;
use crate::acts::strangers::stranger::{Stranger, beside};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "schema: views in a circle", inflict: circle },
    Damage { name: "schema: a view without an end", inflict: endless },
    Damage { name: "schema: triggers that go on for ever", inflict: triggers },
    Damage { name: "schema: thousands of columns", inflict: columns },
    Damage { name: "schema: expressions that fail", inflict: expressions },
    Damage { name: "schema: modules and collations that are not there", inflict: missing },
    Damage { name: "schema: deep nesting", inflict: nesting },
    Damage { name: "schema: wrong root page", inflict: root_page },
    Damage { name: "schema: rows that are no CREATE", inflict: rows },
    Damage { name: "schema: a definition of something else", inflict: redefined },
    Damage { name: "FTS5: its tables", inflict: fts },
    Damage { name: "R-tree: its nodes", inflict: rtree },
    Damage { name: "statistics", inflict: statistics },
];

/// Runs SQL on the file with a writable schema. Returns `None` if SQLite fails, as with a file that is already damaged.
fn edit(target: &mut Target<'_>, sql: &str) -> Option<()> {
    let path = target.scratch.join("edited.db");
    for end in ["", "-wal", "-journal", "-shm"] {
        let _ = std::fs::remove_file(beside(&path, end));
    }
    target.files.write(&path).ok()?;
    let plain = Connection::open(&path).ok()?;
    plain.execute_batch("PRAGMA writable_schema = ON; PRAGMA synchronous = OFF").ok()?;
    plain.execute_batch(sql).ok()?;
    plain.close().ok()?;
    target.files = Stranger::read(&path).ok()?;
    Some(())
}

/// Adds objects as rows, each with its root page, and adds questions about them.
fn add(target: &mut Target<'_>, objects: &[(&str, &str, u32, &str)]) -> Option<String> {
    let mut sql = String::new();
    for (sort, name, root, definition) in objects {
        let (definition, table) = (definition.replace('\'', "''"), if *sort == "table" { name } else { "log" });
        sql.push_str(&format!(
            "INSERT INTO sqlite_schema VALUES ('{sort}', '{name}', '{table}', {root}, '{definition}');"
        ));
    }
    edit(target, &sql)?;
    for (_, name, ..) in objects.iter().filter(|(sort, ..)| matches!(*sort, "table" | "view")) {
        target.asks.push(Ask::Read(format!("SELECT * FROM \"{name}\" LIMIT 50")));
    }
    let mut detail = objects.iter().map(|(_, _, _, definition)| *definition).collect::<Vec<_>>().join("; ");
    detail.truncate((0..=300).rev().find(|at| detail.is_char_boundary(*at)).unwrap_or(0));
    Some(detail)
}

fn any<'a, T>(all: &'a [T], rng: &mut StdRng) -> &'a T {
    &all[rng.random_range(0..all.len())]
}

fn circle(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    add(
        target,
        &[
            ("view", "ring1", 0, "CREATE VIEW ring1 AS SELECT * FROM ring2"),
            ("view", "ring2", 0, "CREATE VIEW ring2 AS SELECT * FROM ring3, log"),
            ("view", "ring3", 0, "CREATE VIEW ring3 AS SELECT * FROM ring1"),
        ],
    )
}

fn endless(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let view =
        "CREATE VIEW endless AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let detail = add(target, &[("view", "endless", 0, view)])?;
    target.asks.clear();
    target.asks.push(Ask::Endless("SELECT count(*) FROM endless".into()));
    target.asks.push(Ask::Endless("SELECT i FROM endless WHERE i < 0".into()));
    Some(detail)
}

fn triggers(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let forth = "CREATE TRIGGER forth AFTER INSERT ON log BEGIN INSERT INTO typed VALUES (1, 'x', 1); END";
    let back = "CREATE TRIGGER back AFTER INSERT ON typed BEGIN INSERT INTO log VALUES ('x', 1); END";
    let slow = "CREATE TRIGGER slow AFTER DELETE ON log BEGIN \
                SELECT count(*) FROM typed a, typed b, item c, item d, item e, item f, item g; END";
    let back = ("trigger", "back", 0, back);
    let detail = add(target, &[("trigger", "forth", 0, forth), ("trigger", "slow", 0, slow)])?;
    edit(
        target,
        &format!("INSERT INTO sqlite_schema VALUES ('trigger', 'back', 'typed', 0, '{}')", back.3.replace('\'', "''")),
    )?;
    target.asks.push(Ask::Write("INSERT INTO log VALUES ('a', 1)".into()));
    target.asks.push(Ask::Endless("DELETE FROM log RETURNING 1".into()));
    Some(detail)
}

fn columns(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let count = *any(&[1990, 2000, 2001, 5000, 40_000], rng);
    let names: Vec<_> = (0..count).map(|at| format!("c{at}")).collect();
    let wide = format!("CREATE TABLE wide ({})", names.join(", "));
    add(target, &[("table", "wide", 2, &wide)])?;
    Some(format!("{count}"))
}

fn expressions(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let tables: &[&str] = &[
        "CREATE TABLE odd (a, b AS (nowhere))",
        "CREATE TABLE odd (a, b AS (c), c AS (b))",
        "CREATE TABLE odd (a, b AS (abs(-9223372036854775807 - 1)))",
        "CREATE TABLE odd (a, b AS ((SELECT 1)))",
        "CREATE TABLE odd (a CHECK (no_such_function(a)))",
        "CREATE TABLE odd (a CHECK (abs(-9223372036854775807 - 1)))",
        "CREATE TABLE odd (a CHECK (json_extract('{bad', '$.x')))",
        "CREATE TABLE odd (a DEFAULT (no_such_function()), b)",
        "CREATE TABLE odd (a REFERENCES odd (a), b REFERENCES nowhere (x), UNIQUE (a COLLATE nowhere))",
        "CREATE TABLE odd (a, b AS (zeroblob(1000000)))",
        "CREATE TABLE odd (a, b AS (printf('%*d', 1000000, 1)))",
    ];
    let detail = add(target, &[("table", "odd", 2, any::<&str>(tables, rng))])?;
    target.asks.push(Ask::Write("INSERT INTO odd (a) VALUES (1)".into()));
    target.asks.push(Ask::Write("UPDATE odd SET a = 2".into()));
    Some(detail)
}

fn missing(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let objects = [
        ("table", "nowhere", 0, "CREATE VIRTUAL TABLE nowhere USING no_such_module(a, b)"),
        ("table", "copied", 0, "CREATE VIRTUAL TABLE copied USING fts5(nonsense = 'x', '')"),
        ("table", "shadow", 0, "CREATE VIRTUAL TABLE shadow USING fts5(body, content = 'shadow')"),
        ("table", "circular", 0, "CREATE VIRTUAL TABLE circular USING fts5(a, content = 'circular_view')"),
        ("table", "collated", 2, "CREATE TABLE collated (a COLLATE nowhere PRIMARY KEY, b) WITHOUT ROWID"),
        ("table", "tokens", 0, "CREATE VIRTUAL TABLE tokens USING fts5(a, tokenize = 'no_such_tokenizer')"),
        ("index", "log_sorted", 3, "CREATE INDEX log_sorted ON log (what COLLATE nowhere)"),
        ("index", "log_failing", 3, "CREATE INDEX log_failing ON log (no_such_function(what))"),
        ("table", "old", 0, "CREATE VIRTUAL TABLE old USING fts3(a)"),
        ("table", "stat", 0, "CREATE VIRTUAL TABLE stat USING dbstat"),
    ];
    let detail = add(target, &[*any(&objects, rng)])?;
    target.asks.push(Ask::Read("SELECT * FROM log WHERE what > 'a' ORDER BY what COLLATE nowhere".into()));
    target.asks.push(Ask::Write("INSERT INTO log VALUES ('a', 1)".into()));
    Some(detail)
}

fn nesting(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let depth = *any(&[90, 400, 999, 1500, 30_000], rng);
    let (open, close) =
        *any(&[("(", ")"), ("abs(", ")"), ("-", ""), ("CASE WHEN 1 THEN ", " END"), ("(SELECT ", ")")], rng);
    let view = format!("CREATE VIEW deep AS SELECT {}1{}", open.repeat(depth), close.repeat(depth));
    add(target, &[("view", "deep", 0, &view)])?;
    Some(format!("{depth} times {open}"))
}

fn root_page(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let pages = target.files.pages().max(1);
    let name = *any(&["item", "item_a", "word", "counted_more", "long", "note_data", "log", "box_node"], rng);
    let wrong = [0, 1, 2, 3, pages, pages + 1, 99_999, usize::try_from(i32::MAX).ok()?, rng.random_range(1..=pages)];
    let root = match rng.random_range(0..12) {
        0 => "-1".to_owned(),
        1 => "NULL".to_owned(),
        2 => "'x'".to_owned(),
        3 => "9223372036854775807".to_owned(),
        _ => any(&wrong, rng).to_string(),
    };
    edit(target, &format!("UPDATE sqlite_schema SET rootpage = {root} WHERE name = '{name}'"))?;
    Some(format!("of {name}: {root}"))
}

fn rows(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let statements = [
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'DROP TABLE item')",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x (a); DELETE FROM item')",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE TABLE y (a)')",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE INDEX x ON item (a)')",
        "INSERT INTO sqlite_schema VALUES ('table', 'item', 'item', 2, 'CREATE TABLE item (a)')",
        "INSERT INTO sqlite_schema VALUES ('index', 'x', 'nowhere', 2, 'CREATE INDEX x ON nowhere (a)')",
        "INSERT INTO sqlite_schema VALUES ('index', 'sqlite_autoindex_log_1', 'log', 2, NULL)",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, 'CREATE TABLE x AS SELECT * FROM item')",
        "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, x'00ff00')",
        "INSERT INTO sqlite_schema VALUES ('table', 'sqlite_stat1', 'sqlite_stat1', 2, 'CREATE TABLE sqlite_stat1 (a)')",
        "INSERT INTO sqlite_schema VALUES (NULL, NULL, NULL, NULL, 'CREATE TABLE x (a)')",
        "INSERT INTO sqlite_schema VALUES (NULL, NULL, NULL, NULL, NULL)",
        "INSERT INTO sqlite_schema VALUES ('trigger', 'x', 'item', 0, 'CREATE TEMP TRIGGER x AFTER INSERT ON item BEGIN SELECT 1; END')",
        "INSERT INTO sqlite_schema SELECT * FROM sqlite_schema",
        "UPDATE sqlite_schema SET sql = NULL WHERE name = 'item'",
        "UPDATE sqlite_schema SET sql = '' WHERE name = 'word'",
        "UPDATE sqlite_schema SET sql = sql || printf('%.*c', 900000, ' ') WHERE name = 'item'",
        "UPDATE sqlite_schema SET name = 'a' || char(10) || '\"b' WHERE name = 'log'",
        "UPDATE sqlite_schema SET tbl_name = 'nowhere'",
        "DELETE FROM sqlite_schema WHERE name = 'item'",
        "DELETE FROM sqlite_schema WHERE name LIKE 'note_%'",
        "DELETE FROM sqlite_schema",
    ];
    let statement = any(&statements, rng);
    edit(target, statement)?;
    Some((*statement).to_owned())
}

fn redefined(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let definitions = [
        ("item", "CREATE TABLE item (a PRIMARY KEY, id, b, c) WITHOUT ROWID"),
        ("item", "CREATE TABLE item (id, a, b, c, d, e, f NOT NULL)"),
        ("item", "CREATE TABLE item (id INTEGER PRIMARY KEY)"),
        ("word", "CREATE TABLE word (k TEXT PRIMARY KEY, v)"),
        ("word", "CREATE TABLE word (v, k, PRIMARY KEY (v, k)) WITHOUT ROWID"),
        ("item_a", "CREATE INDEX item_a ON item (b)"),
        ("item_a", "CREATE UNIQUE INDEX item_a ON item (a)"),
        ("item_a", "CREATE INDEX item_a ON item (a, b, c, a)"),
        ("item_b", "CREATE INDEX item_b ON item (b, a)"),
        ("typed", "CREATE TABLE typed (a BLOB, b INT NOT NULL, c TEXT) STRICT"),
        ("counted", "CREATE TABLE counted (id INTEGER PRIMARY KEY, x AS (id), twice, more)"),
        ("note_data", "CREATE TABLE note_data (id TEXT, block)"),
        ("box_node", "CREATE TABLE box_node (data, nodeno)"),
    ];
    let (name, definition) = *any(&definitions, rng);
    edit(target, &format!("UPDATE sqlite_schema SET sql = '{definition}' WHERE name = '{name}'"))?;
    Some(definition.to_owned())
}

fn noise(rng: &mut StdRng, longest: usize) -> String {
    let mut noise = vec![0; rng.random_range(0..longest)];
    rng.fill_bytes(&mut noise);
    noise.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fts(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (noise, skip) = (noise(rng, 60), rng.random_range(0..4));
    let statements = [
        format!("UPDATE note_data SET block = x'{noise}' WHERE id = (SELECT id FROM note_data LIMIT 1 OFFSET {skip})"),
        format!("UPDATE note_data SET block = CAST(block || x'{noise}' AS BLOB) WHERE id > 10"),
        format!("UPDATE note_data SET block = substr(block, {skip})"),
        "UPDATE note_data SET block = zeroblob(length(block))".to_owned(),
        "UPDATE note_data SET id = id + 1 WHERE id = (SELECT max(id) FROM note_data)".to_owned(),
        format!("UPDATE note_idx SET pgno = {skip} * 1000 - 1"),
        format!("UPDATE note_docsize SET sz = x'{noise}'"),
        "DELETE FROM note_data".to_owned(),
        "DELETE FROM note_content WHERE id % 2".to_owned(),
        "UPDATE note_config SET v = 99".to_owned(),
        "DROP TABLE note_content".to_owned(),
    ];
    let statement = any(&statements, rng);
    edit(target, statement)?;
    Some(statement.clone())
}

fn rtree(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let noise = noise(rng, 200);
    let statements = [
        format!("UPDATE box_node SET data = x'{noise}'"),
        "UPDATE box_node SET data = zeroblob(length(data))".to_owned(),
        "UPDATE box_node SET data = x'0fff' || substr(data, 3) WHERE nodeno = 1".to_owned(),
        "UPDATE box_node SET data = CAST(x'0005' || substr(data, 3) AS BLOB) WHERE nodeno = 1".to_owned(),
        "UPDATE box_parent SET parentnode = nodeno".to_owned(),
        "UPDATE box_rowid SET nodeno = nodeno + 100".to_owned(),
        "DELETE FROM box_node".to_owned(),
    ];
    let statement = any(&statements, rng);
    edit(target, statement)?;
    Some(statement.clone())
}

fn statistics(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let noise = noise(rng, 60);
    let statements = [
        "UPDATE sqlite_stat1 SET stat = '-1 99999999999999999999 x'".to_owned(),
        "UPDATE sqlite_stat1 SET stat = printf('%.*c', 100000, '1')".to_owned(),
        "UPDATE sqlite_stat1 SET idx = 'nowhere'".to_owned(),
        "UPDATE sqlite_stat1 SET stat = '0 0 0 0 unordered noskipscan sz=0'".to_owned(),
        format!("UPDATE sqlite_stat4 SET sample = x'{noise}'"),
        "UPDATE sqlite_stat4 SET nEq = '999999999999999999999', nLt = NULL".to_owned(),
        "INSERT INTO sqlite_stat4 SELECT * FROM sqlite_stat4".to_owned(),
    ];
    let statement = any(&statements, rng);
    edit(target, &format!("ANALYZE; {statement}"))?;
    Some(statement.clone())
}
