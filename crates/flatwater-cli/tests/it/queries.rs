//! `flatwater query`.

use crate::support::Place;

const USERS: &str = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, points REAL, picture BLOB);
    INSERT INTO users VALUES (1, 'Ada, \"A\"', 1.5, x'00ff'), (2, NULL, 2.0, NULL);";

fn query(place: &Place, arguments: &[&str]) -> String {
    place.run(&[&["query", "app.db"], arguments].concat()).ok()
}

#[test]
fn each_format_has_its_form() {
    let place = Place::with(USERS);
    let of = |format: &str| query(&place, &["SELECT * FROM users", "-o", format]);
    let csv = "id,name,points,picture\n1,\"Ada, \"\"A\"\"\",1.5,x'00ff'\n2,,2.0,\n";
    assert_eq!(of("csv"), csv);
    assert_eq!(query(&place, &["SELECT * FROM users"]), csv, "csv is the form that is not for a terminal");
    let json = r#"[{"id":1,"name":"Ada, \"A\"","points":1.5,"picture":"AP8="},
{"id":2,"name":null,"points":2.0,"picture":null}]
"#;
    assert_eq!(of("json"), json);
    let lines = json.replace("},\n", "}\n").replace(['[', ']'], "");
    assert_eq!(of("jsonl"), lines);
    assert_eq!(of("list").lines().nth(1), Some("1|Ada, \"A\"|1.5|x'00ff'"));
    let table = "\
+----+----------+--------+---------+
| id | name     | points | picture |
+----+----------+--------+---------+
|  1 | Ada, \"A\" |    1.5 | x'00ff' |
|  2 | NULL     |    2.0 | NULL    |
+----+----------+--------+---------+
";
    assert_eq!(of("table"), table);
    assert!(of("box").starts_with("┌────┬──────────┬"), "{}", of("box"));
    assert_eq!(of("markdown").lines().nth(1), Some("|----|----------|--------|---------|"));
    assert_eq!(of("line").lines().next(), Some("     id = 1"));
}

#[test]
fn the_json_is_that_of_the_library() {
    let place = Place::with(USERS);
    let sql = "SELECT *, 9007199254740993, 1e300, 'ä\u{7}' FROM users";
    let db = place.open();
    let of_library = db.query_json(sql, ()).wait().unwrap();
    db.close().wait().unwrap();
    assert_eq!(query(&place, &[sql, "-o", "json"]).replace(",\n", ",").trim_end(), of_library);
}

#[test]
fn a_result_without_rows_has_its_columns() {
    let place = Place::with(USERS);
    let of = |format: &str| query(&place, &["SELECT id, name FROM users WHERE id > 5", "-o", format]);
    assert_eq!((of("csv"), of("json"), of("jsonl")), ("id,name\n".to_owned(), "[]\n".to_owned(), String::new()));
    assert!(of("table").contains("| id | name |"));
    assert_eq!(query(&place, &["SELECT id FROM users WHERE id > 5", "--no-header"]), "");
}

#[test]
fn parameters_are_given_by_place_or_by_name() {
    let place = Place::with(USERS);
    assert_eq!(
        query(&place, &["SELECT typeof(?), typeof(?), ?", "1", "007", "it's", "--no-header"]),
        "integer,text,it's\n"
    );
    assert_eq!(query(&place, &["SELECT ? * 2", "-5", "--no-header"]), "-10\n");
    assert_eq!(query(&place, &["--no-header", "--", "-- twice\nSELECT ?", "--x"]), "--x\n");
    let named = ["SELECT :a + :b; SELECT @b", "--param", "a=1", "-p", ":b=2.5", "--no-header"];
    assert_eq!(query(&place, &named), "3.5\n2.5\n");
    let unknown = place.run(&["query", "app.db", "SELECT :a", "--param", "b=1"]).failed(2);
    assert!(unknown.contains("no statement has a parameter b"), "{unknown}");
}

#[test]
fn statements_run_in_their_order_on_one_connection() {
    let place = Place::with(USERS);
    let sql = "SELECT count(*) FROM users; BEGIN; CREATE TEMP TABLE t AS SELECT 7 AS seven; INSERT INTO users (id) VALUES (3);
        COMMIT; SELECT * FROM t; SELECT count(*) FROM users; SELECT changes();";
    assert_eq!(query(&place, &[sql, "--no-header"]), "2\n7\n3\n1\n");
    assert_eq!(query(&place, &["UPDATE users SET points = 0 RETURNING id", "--no-header"]), "1\n2\n3\n");
}

#[test]
fn sql_comes_from_a_file_or_from_the_input() {
    let place = Place::with(USERS);
    place.write("count.sql", "-- how many\nSELECT count(*) AS users FROM users;\n");
    assert_eq!(query(&place, &["--file", "count.sql"]), "users\n2\n");
    assert_eq!(place.run_with_input(&["query", "app.db"], "SELECT 1 AS one; SELECT 2").ok(), "one\n1\n2\n2\n");
    assert_eq!(place.run_with_input(&["query", "app.db", "-"], "SELECT 1").ok(), "1\n1\n");
    place.run_with_input(&["query", "app.db"], "-- nothing").failed(2);
}

#[test]
fn an_error_marks_its_place() {
    let place = Place::with(USERS);
    let error = place.run(&["query", "app.db", "SELECT 1;\nSELECT nmae FROM users"]);
    assert_eq!(error.out, "1\n1\n", "what ran before it is printed");
    let lines: Vec<String> = error.failed(1).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "error: no such column: nmae (SQLITE_ERROR)");
    assert_eq!(lines[1..3], ["  line 2: SELECT nmae FROM users".to_owned(), format!("{}^", " ".repeat(17))]);
    assert!(lines[3].starts_with("  hint: ") && lines[3].contains("name"), "{lines:?}");
    let constraint = place.run(&["query", "app.db", "SELECT 1; INSERT INTO users (id) VALUES (1)"]).failed(1);
    assert!(constraint.starts_with("error: UNIQUE constraint failed: users.id"), "{constraint}");
}

#[test]
fn a_command_that_only_reads_writes_nothing() {
    let place = Place::with(USERS);
    let refused = place.run(&["query", "app.db", "--read-only", "DELETE FROM users"]).failed(1);
    assert!(refused.contains("read"), "{refused}");
    assert_eq!(query(&place, &["SELECT count(*) FROM users", "--no-header", "--read-only"]), "2\n");
}

#[test]
fn a_file_is_made_only_if_the_command_says_so() {
    let place = Place::new();
    let error = place.run(&["query", "app.db", "SELECT 1"]).failed(1);
    assert!(error.contains("app.db does not exist\n  hint: check the path, or give `--create`"), "{error}");
    assert!(!place.path("app.db").exists());
    query(&place, &["CREATE TABLE t (a)", "--create"]);
    assert_eq!(query(&place, &["SELECT name FROM sqlite_schema", "--no-header"]), "t\n");
    assert_eq!(place.run(&["query", ":memory:", "SELECT 1", "--no-header"]).ok(), "1\n");
}

#[test]
fn a_file_keeps_its_journal_mode() {
    let place = Place::new();
    let plain = flatwater::rusqlite::Connection::open(place.path("app.db")).unwrap();
    plain.execute_batch(USERS).unwrap();
    drop(plain);
    let sql = "INSERT INTO users (name) VALUES ('B'); SELECT count(*) FROM users; PRAGMA journal_mode";
    assert_eq!(query(&place, &[sql, "--no-header"]), "3\ndelete\n");
}

#[test]
fn a_locked_file_has_an_exit_code_of_its_own() {
    let place = Place::with(USERS);
    let other = flatwater::rusqlite::Connection::open(place.path("app.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let insert = ["query", "app.db", "--busy-timeout", "0.01", "INSERT INTO users (name) VALUES ('B')"];
    let error = place.run(&insert).failed(4);
    assert!(error.contains("SQLITE_BUSY"), "{error}");
    other.execute_batch("COMMIT").unwrap();
    place.run(&insert).ok();
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::with(USERS);
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000) SELECT i FROM n";
    let mut child =
        place.command().args(["query", "app.db", numbers]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut first = [0; 4];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    assert_eq!((&first, child.wait().unwrap().code()), (b"i\n1\n", Some(0)));
}

#[test]
fn colours_are_for_terminals() {
    let place = Place::with(USERS);
    let error = place.run(&["query", "app.db", "SELEC 1"]).failed(1);
    assert!(error.starts_with("error: ") && !error.contains('\x1b'), "{error}");
}

#[test]
fn a_key_is_read_from_a_file() {
    let place = Place::with(USERS);
    place.run(&["query", "app.db", "SELECT 1", "--key-file", "nothing"]).failed(1);
    place.write("key", "secret\n");
    let error = place.run(&["query", "app.db", "SELECT 1", "--key-file", "key"]).failed(1);
    assert!(error.contains("encrypt") && !error.contains("secret"), "{error}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_what_runs() {
    let place = Place::with(USERS);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    for sql in [
        format!("SELECT 1; {endless} SELECT max(i) FROM n"),
        format!("UPDATE users SET points = 0 RETURNING 1; {endless} INSERT INTO users (id) SELECT i + 9 FROM n"),
    ] {
        let mut command = place.command();
        let mut child = command.args(["query", "app.db", &sql]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut first = [0; 1];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        let process = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &process]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{sql}");
    }
    assert_eq!(query(&place, &["SELECT count(*), max(points) FROM users", "--no-header"]), "2,0.0\n");
}
