//! Errors never contain bound values, even if SQLite quotes them; they may contain the SQL.
//!
//! Leaves out: the other parts of error texts (`texts`).

use flatwater::{Database, Error, Params, params};

use crate::place::{Place, in_both_places};

in_both_places!(
    no_error_has_a_bound_value_in_it,
    no_error_has_a_short_value_or_a_short_piece_of_one_in_it,
    named_values_and_values_among_others_are_hidden_too,
    what_stands_in_the_sql_can_be_read_even_if_it_is_bound_too,
    values_that_do_not_fit_what_is_read_stay_out_of_the_error,
    a_mebibyte_that_sqlite_quotes_is_hidden_and_the_message_is_short,
    a_message_that_is_cut_in_the_middle_of_a_value_shows_none_of_it,
);

/// A value that must not appear in a log.
const SECRET: &str = "hunter2secret";

const SCHEMA: &str = "
    CREATE VIRTUAL TABLE five USING fts5 (x); INSERT INTO five VALUES ('x'); CREATE VIRTUAL TABLE four USING fts4 (x);
    CREATE TABLE t (a); CREATE TABLE key (a UNIQUE); CREATE TABLE typed (a INTEGER) STRICT;
    CREATE TABLE short (a CHECK (length(a) < 3));
    CREATE TRIGGER guard BEFORE INSERT ON t WHEN new.a IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'bad value ' || new.a); END";

const MATCH: &str = "SELECT * FROM five WHERE five MATCH ?";

/// Statements that fail. In most cases SQLite quotes the value, or a part of it.
const FAILING: &[(&str, &str)] = &[
    ("SELECT json_extract('{\"a\":1}', ?)", "hunter2secret"),
    ("SELECT json_extract('{\"a\":[1]}', ?)", "$.a[hunter2secret"),
    ("SELECT '[1]' -> ?", "$[hunter2secret"),
    ("SELECT json_set('{}', ?, 1)", "hunter2secret"),
    ("SELECT json_remove('{}', ?)", "it's hunter2secret"),
    ("SELECT * FROM json_each('{}', ?)", "hunter2secret"),
    ("SELECT json(?)", "{hunter2secret"),
    ("SELECT jsonb(?)", "{hunter2secret"),
    ("SELECT * FROM four WHERE four MATCH ?", "(hunter2secret"),
    (MATCH, "a : \"hunter2secret\" \"x"),
    (MATCH, "NOT \"hunter2secret\""),
    (MATCH, "a AND AND \"hunter2secret\""),
    (MATCH, "{a} \"hunter2secret\""),
    (MATCH, "a ^ ^ \"hunter2secret\""),
    (MATCH, "NEAR(a, hunter2secret)"),
    (MATCH, "hunter2secret:x"),
    (MATCH, "hunter2secret.x"),
    (MATCH, "\"hunter2secret"),
    (MATCH, "*hunter2secret"),
    ("SELECT * FROM five WHERE five MATCH ? ORDER BY rank", "*hunter2secret"),
    ("SELECT * FROM five WHERE five MATCH 'x' AND rank MATCH ? ORDER BY rank", "hunter2secret(1)"),
    ("SELECT * FROM five WHERE five MATCH 'x' AND rank MATCH ? ORDER BY rank", "hunter2secret"),
    ("INSERT INTO five (five) VALUES (?)", "hunter2secret"),
    ("INSERT INTO five (five, rank) VALUES ('rank', ?)", "hunter2secret"),
    ("INSERT INTO four (four) VALUES (?)", "hunter2secret"),
    ("INSERT INTO t VALUES (?)", "hunter2secret"),
    ("INSERT INTO key VALUES (?), ('other'), ('other')", "hunter2secret"),
    ("INSERT INTO typed VALUES (?)", "hunter2secret"),
    ("INSERT INTO short VALUES (?)", "hunter2secret"),
    ("VACUUM INTO ?", "/nowhere/hunter2secret"),
    ("SELECT load_extension(?)", "/nowhere/hunter2secret"),
    ("SELECT fts3_tokenizer(?)", "hunter2secret"),
    ("SELECT 'x' REGEXP ?", "hunter2secret("),
    ("SELECT 'x' LIKE 'y' ESCAPE ?", "hunter2secret"),
    ("SELECT 1 LIMIT ?", "hunter2secret"),
];

async fn open(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(SCHEMA).await.unwrap();
    db
}

/// Returns the errors of every call for a text that fails when it runs, outside a transaction and inside.
async fn errors(db: &Database, sql: &str, params: &Params) -> Vec<Error> {
    let params = || params.clone();
    let mut errors = vec![db.batch([(sql, Ok(params()))]).await.err()];
    let tx = db.begin().await.unwrap();
    errors.push(tx.batch([(sql, Ok(params()))]).await.err());
    if sql.starts_with("SELECT") {
        errors.extend([tx.query(sql, params()).await.err(), tx.query_optional(sql, params()).await.err()]);
        drop(tx);
        errors.extend([db.query(sql, params()).await.err(), db.query_optional(sql, params()).await.err()]);
    } else {
        errors.extend([tx.execute(sql, params()).await.err(), tx.execute_many(sql, [params()]).await.err()]);
        drop(tx);
        errors.extend([db.execute(sql, params()).await.err(), db.execute_many(sql, [params()]).await.err()]);
    }
    let (asked, failed) = (errors.len(), errors.into_iter().flatten().collect::<Vec<_>>());
    assert_eq!(failed.len(), asked, "{sql} does not fail everywhere: {failed:?}");
    failed
}

fn text(error: &Error) -> String {
    format!("{error} {error:?} {} {:?}", error.message(), error.hint())
}

async fn no_error_has_a_bound_value_in_it(place: &Place) {
    let db = open(place).await;
    let mut leaks = Vec::new();
    for (sql, value) in FAILING {
        assert!(value.contains(SECRET));
        let errors = errors(&db, sql, &params![*value].unwrap()).await;
        leaks.extend(errors.iter().map(text).find(|text| text.contains(SECRET)));
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// Statements that fail, and the part of the value that SQLite quotes.
const SHORT: &[(&str, &str, &str)] = &[
    (MATCH, "q:b", "q"),
    (MATCH, "q7.x", "q7"),
    (MATCH, "\u{e9}:b", "\u{e9}"),
    (MATCH, "a + + b", "+"),
    (MATCH, "a ) b", ")"),
    ("SELECT * FROM five WHERE five MATCH 'x' AND rank MATCH ? ORDER BY rank", "q(1)", "q"),
    ("INSERT INTO five (five) VALUES (?)", "q", "q"),
    ("SELECT * FROM four WHERE four MATCH ?", "(q", "q"),
    ("SELECT json_extract('{}', ?)", "q", "q"),
    ("SELECT json_extract('{\"z\":[1]}', ?)", "$.z[q", "[q"),
    ("SELECT json_set('{}', ?, 1)", "q", "q"),
    ("INSERT INTO t VALUES (?)", "q", "q"),
    ("INSERT INTO t VALUES (?)", "!!", "!!"),
    ("VACUUM INTO ?", "/nowhere/q/z", "q"),
    ("SELECT load_extension(?)", "/nowhere/q", "q"),
    ("SELECT fts3_tokenizer(?)", "q", "q"),
    ("SELECT 'x' REGEXP ?", "q(", "q"),
];

async fn no_error_has_a_short_value_or_a_short_piece_of_one_in_it(place: &Place) {
    let db = open(place).await;
    let mut leaks = Vec::new();
    for (sql, value, piece) in SHORT {
        assert!(value.contains(piece) && !sql.contains(piece) || !piece.is_ascii() || *piece == "+" || *piece == ")");
        for error in errors(&db, sql, &params![*value].unwrap()).await {
            // The words of SQLite's own text around it have no such letter.
            let quoted = |text: &str| text.replace("(a bound value)", "").replace("REGEXP", "").contains(piece);
            leaks.extend(Some(error.message().to_owned()).filter(|message| quoted(message)));
        }
    }
    for (value, piece) in [(7, "7"), (12, "12")] {
        for error in errors(&db, "INSERT INTO t VALUES (?)", &params![value].unwrap()).await {
            leaks.extend(Some(error.message().to_owned()).filter(|message| message.contains(piece)));
        }
    }
    assert!(leaks.is_empty(), "{leaks:#?}");
    let error = db.query(MATCH, ("no such column: q",)).await.unwrap_err();
    assert!(error.message().starts_with("no such column: "), "its own words can be read: {error}");
}

async fn named_values_and_values_among_others_are_hidden_too(place: &Place) {
    let db = open(place).await;
    let named = flatwater::named! { ":path": SECRET, ":other": "{}" }.unwrap();
    let among = params!["{}", 7, None::<i64>, SECRET, vec![1_u8]].unwrap();
    for (sql, params) in
        [("SELECT json_extract(:other, :path)", named), ("SELECT json_extract(?, ?4), ?2, ?3, ?5", among)]
    {
        for error in errors(&db, sql, &params).await {
            assert!(error.message().contains("(a bound value)"), "{error}");
            assert!(!text(&error).contains(SECRET), "{error}");
        }
    }
}

async fn what_stands_in_the_sql_can_be_read_even_if_it_is_bound_too(place: &Place) {
    let db = open(place).await;
    for (sql, params, part) in [
        ("SELECT json_extract('{}', 'plain')", params![], "plain"),
        ("SELECT json_extract('{}', 'hunter2secret'), ?", params![SECRET], SECRET),
        ("SELECT * FROM five('AND plain')", params![], "AND"),
        ("SELECT plain FROM t", params![], "no such column: plain"),
        ("INSERT INTO t VALUES ('plain')", params![], "bad value plain"),
        ("INSERT INTO key (a) VALUES (?1), (?1)", params!["key.a"], "UNIQUE constraint failed: key.a"),
        ("INSERT INTO typed (a) VALUES (?)", params!["typed"], "cannot store TEXT value in INTEGER column typed.a"),
        ("SELECT abs(?) FROM plain", params!["plain"], "no such table: plain"),
    ] {
        let errors = errors(&db, sql, &params.unwrap()).await;
        for error in errors {
            assert!(error.message().contains(part), "{sql}: {error}");
            assert_eq!(error.sql(), Some(sql), "{error:?}");
        }
    }
}

async fn values_that_do_not_fit_what_is_read_stay_out_of_the_error(place: &Place) {
    let db = open(place).await;
    let errors = [
        db.query_optional_value::<i64>("SELECT ?", (SECRET,)).await.unwrap_err(),
        db.query_as::<(i64, i64)>("SELECT 1, ?", (SECRET,)).await.unwrap_err(),
        db.query_optional("SELECT ? AS a", (SECRET,)).await.unwrap().unwrap().get::<i64>("a").unwrap_err(),
        db.query("SELECT ? AS a", (SECRET,)).await.unwrap().get(0).unwrap().get::<f64>(0).unwrap_err(),
        db.execute("SELECT 1", (SECRET,)).await.unwrap_err(),
        db.execute("INSERT INTO key VALUES (?)", (SECRET, SECRET)).await.unwrap_err(),
    ];
    for error in errors {
        assert!(!text(&error).contains(SECRET), "{error}");
    }
    assert!(!format!("{:?}", params![SECRET].unwrap()).contains(SECRET));
}

/// A search for one word with a colon, and a trigger that quotes what is inserted.
const QUOTING: [&str; 2] = [MATCH, "INSERT INTO t VALUES (?)"];

async fn a_mebibyte_that_sqlite_quotes_is_hidden_and_the_message_is_short(place: &Place) {
    let db = open(place).await;
    for unit in ["a", "hunter2secret", "0123456789abcdef"] {
        let value = format!("{}:x", unit.repeat((1 << 20) / unit.len()));
        for sql in QUOTING {
            for error in errors(&db, sql, &params![&*value].unwrap()).await {
                assert!(error.message().contains("(a bound value)") && error.message().len() < 600, "{error}");
                assert!(!text(&error).contains(&value[..4]), "{error}");
            }
        }
    }
}

async fn a_message_that_is_cut_in_the_middle_of_a_value_shows_none_of_it(place: &Place) {
    let db = open(place).await;
    let guard = "CREATE TRIGGER pads BEFORE INSERT ON key WHEN new.a LIKE 'hunter%'
        BEGIN SELECT RAISE(ABORT, substr(hex(zeroblob(400)), 1, ";
    for shown in 490..510 {
        db.execute_script(format!("DROP TRIGGER IF EXISTS pads; {guard} {shown}) || new.a); END")).await.unwrap();
        for error in errors(&db, "INSERT INTO key VALUES (?)", &params![SECRET].unwrap()).await {
            let message = error.message().trim_start_matches("row 0, counted from 0: ");
            assert!(message.starts_with("0000") && !message.contains('h'), "{shown}: {error}");
        }
    }
}
