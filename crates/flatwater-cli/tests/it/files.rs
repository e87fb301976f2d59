//! `flatwater import` and `flatwater export`.

use flatwater::rusqlite;

use crate::support::Place;

fn rows(place: &Place, sql: &str) -> String {
    place.run(&["query", "app.db", sql, "--no-header"]).ok()
}

#[test]
fn a_csv_file_becomes_a_table() {
    let place = Place::new();
    place.write("goods.csv", "id,name,price,code\n1,\"tea, green\",2.50,007\n2,,3,008\n");
    let ended = place.run(&["import", "app.db", "goods.csv", "goods", "--create"]);
    assert_eq!((ended.code, &*ended.err), (0, "2 rows into goods\n"));
    let sql = "SELECT sql FROM sqlite_schema";
    let schema = r#"CREATE TABLE "goods" ("id" INTEGER, "name" TEXT, "price" REAL, "code" TEXT)"#;
    assert_eq!(rows(&place, sql), format!("\"{}\"\n", schema.replace('"', "\"\"")));
    assert_eq!(rows(&place, "SELECT * FROM goods"), "1,\"tea, green\",2.5,007\n2,,3.0,008\n");
    assert_eq!(rows(&place, "SELECT count(*) FROM goods WHERE name IS NULL"), "1\n");
}

#[test]
fn columns_are_found_by_their_names() {
    let place = Place::with("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b AS (a || '!'), c DEFAULT 'x')");
    place.write("t.csv", "A;id\nx;5\n;6\n");
    place.run(&["import", "app.db", "t.csv", "t", "--separator", ";", "--keep-empty"]).ok();
    assert_eq!(rows(&place, "SELECT id, a, b, c FROM t"), "5,x,x!,x\n6,\"\",!,x\n");
    place.write("wrong.csv", "id,d\n7,1\n");
    let refused = place.run(&["import", "app.db", "wrong.csv", "t"]).failed(2);
    assert!(refused.contains("the table t has no column d; it has id, a, c"), "{refused}");
    place.write("plain.csv", "7,y,z\n");
    place.run(&["import", "app.db", "plain.csv", "t", "--no-header"]).ok();
    assert_eq!(rows(&place, "SELECT a, c FROM t WHERE id = 7"), "y,z\n");
}

#[test]
fn json_lines_become_rows() {
    let place = Place::new();
    let lines = "{\"id\":1,\"tags\":[\"a\"],\"on\":true}\n{\"on\":null,\"id\":2}\n";
    place.run_with_input(&["import", "app.db", "-", "t", "--create", "-o", "jsonl", "--type", "tags=BLOB"], lines).ok();
    assert_eq!(
        rows(&place, "SELECT id, tags, \"on\", typeof(id) FROM t"),
        "1,\"[\"\"a\"\"]\",1,integer\n2,,,integer\n"
    );
}

#[test]
fn a_row_that_is_refused_is_named_by_its_line() {
    let place = Place::with("CREATE TABLE t (id INTEGER PRIMARY KEY, a NOT NULL)");
    let text: String = (1..=10_000).map(|id| format!("{id},x\n")).collect();
    place.write("t.csv", format!("id,a\n{text}5,y\n"));
    let error = place.run(&["import", "app.db", "t.csv", "t"]).failed(1);
    assert!(error.contains("t.csv, line 10002: UNIQUE constraint failed: t.id"), "{error}");
    let stayed: u64 = rows(&place, "SELECT count(*) FROM t").trim().parse().unwrap();
    assert!(error.contains(&format!("{stayed} rows are in the table")) && stayed > 0, "{error}");

    rows(&place, "DELETE FROM t");
    let error = place.run(&["import", "app.db", "t.csv", "t", "--atomic"]).failed(1);
    assert!(error.contains("line 10002"), "{error}");
    assert_eq!(rows(&place, "SELECT count(*) FROM t"), "0\n");

    place.run(&["import", "app.db", "t.csv", "t", "--on-conflict", "replace"]).ok();
    assert_eq!(rows(&place, "SELECT count(*), sum(a = 'y') FROM t"), "10000,1\n");
}

#[test]
fn a_line_that_cannot_be_read_ends_an_import() {
    let place = Place::with("CREATE TABLE t (a, b)");
    place.write("t.csv", format!("a,b\n{}3\n", "1,2\n".repeat(5000)));
    let error = place.run(&["import", "app.db", "t.csv", "t", "--atomic"]).failed(1);
    assert!(error.contains("line 5002") && error.contains("has 1 fields"), "{error}");
    assert_eq!(rows(&place, "SELECT count(*) FROM t"), "0\n");
    let error = place.run(&["import", "app.db", "t.csv", "t"]).failed(1);
    assert!(error.contains("(5000 rows are in the table)"), "{error}");
    assert_eq!(rows(&place, "SELECT count(*) FROM t"), "5000\n");
    place.write("short.csv", "a,b\n1,2\n3\n");
    let error = place.run(&["import", "app.db", "short.csv", "new", "--create"]).failed(1);
    assert!(error.contains("(1 rows are in the table), line 3"), "{error}");
    place.write("both.csv", "a,b\n1,2\n1,2\n3\n");
    rows(&place, "CREATE UNIQUE INDEX by_a ON new (a)");
    let error = place.run(&["import", "app.db", "both.csv", "new"]).failed(1);
    assert!(error.contains("line 2: UNIQUE constraint failed: new.a"), "{error}");
    place.run(&["import", "app.db", "t.csv", "u"]).failed(2);
    place.write("twice.csv", "a,A\n1,2\n");
    let error = place.run(&["import", "app.db", "twice.csv", "t"]).failed(2);
    assert!(error.contains("two columns of the file are named A"), "{error}");
    place.write("marked.csv", "\u{feff}a,b\n1,2\n");
    place.run(&["import", "app.db", "marked.csv", "t"]).ok();
}

#[test]
fn a_writer_has_its_turn_during_an_import() {
    let place = Place::with("CREATE TABLE t (a, b); CREATE TABLE own (a)");
    place.write("t.csv", format!("a,b\n{}", "some text,12\n".repeat(50_000)));
    let db = place.open();
    let mut child = place.command().args(["import", "app.db", "t.csv", "t"]).spawn().unwrap();
    let mut between = 0;
    while child.try_wait().unwrap().is_none() {
        db.execute("INSERT INTO own VALUES (1)", ()).wait().unwrap();
        let seen: u64 = db.query_value("SELECT count(*) FROM t", ()).wait().unwrap();
        between += u64::from(seen > 0 && seen < 50_000);
    }
    assert!(child.wait().unwrap().success());
    assert!(between > 0, "no write came between two transactions");
    db.close().wait().unwrap();
    assert_eq!(rows(&place, "SELECT count(*) FROM t"), "50000\n");
}

const SCHEMA: &str = "CREATE TABLE parents (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, double AS (id * 2));
    CREATE TABLE children (parent REFERENCES parents, value);
    CREATE INDEX by_value ON children (value);
    CREATE VIEW names AS SELECT name FROM parents;
    CREATE TRIGGER again AFTER INSERT ON parents BEGIN INSERT INTO children VALUES (new.id, 'trigger'); END;
    CREATE VIRTUAL TABLE found USING fts5(text);
    INSERT INTO parents (id, name) VALUES (7, 'it''s'), (9, NULL);
    INSERT INTO children VALUES (7, x'00ff'), (9, 0.1), (7, 9e999), (9, 'a' || char(0) || 'b');
    INSERT INTO found VALUES ('hello world');";

fn everything(connection: &rusqlite::Connection) -> Vec<String> {
    let sql = "SELECT group_concat(quote(id) || quote(name)) FROM parents UNION ALL
        SELECT group_concat(quote(parent) || quote(value) || length(value)) FROM children UNION ALL
        SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_schema ORDER BY name) UNION ALL
        SELECT group_concat(name || seq) FROM sqlite_sequence UNION ALL
        SELECT count(*) FROM found WHERE found MATCH 'world'";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap();
    rows.map(|row| format!("{:?}", row.unwrap())).collect()
}

#[test]
fn a_dump_makes_the_database_anew() {
    let place = Place::with(SCHEMA);
    let dump = place.run(&["export", "app.db"]).ok();
    let of_file = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let loading = rusqlite::Connection::open(place.path("plain.db")).unwrap();
    loading.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    loading.execute_batch(&dump).unwrap();
    drop(loading);
    let of_sqlite = rusqlite::Connection::open(place.path("plain.db")).unwrap();
    place.write("dump.sql", &dump);
    place.run(&["query", "new.db", "--create", "--file", "dump.sql"]).ok();
    let of_query = rusqlite::Connection::open(place.path("new.db")).unwrap();
    let expected = everything(&of_file);
    assert_eq!((everything(&of_sqlite), everything(&of_query)), (expected.clone(), expected));
}

#[test]
fn tables_are_exported_alone() {
    let place = Place::with(SCHEMA);
    let children = place.run(&["export", "app.db", "children"]).ok();
    assert!(children.contains("CREATE INDEX by_value") && !children.contains("parents ("), "{children}");
    place.run(&["export", "app.db", "nothing"]).failed(2);
    place.write("parents.csv", "old");
    place.run(&["export", "app.db", "parents", "-o", "csv", "--to", "parents.csv"]).ok();
    assert_eq!(place.read("parents.csv"), "id,name,double\n7,it's,14\n9,,18\n");
    assert_eq!(place.run(&["export", "app.db", "parents", "-o", "jsonl"]).ok().lines().count(), 2);
    place.run(&["export", "app.db", "-o", "csv"]).failed(2);
}

#[cfg(unix)]
#[test]
fn an_import_that_is_interrupted_says_what_is_in_the_table() {
    let place = Place::with("CREATE TABLE t (a)");
    let mut command = place.command();
    command
        .args(["import", "app.db", "-", "t"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("a\n{}", "1\n".repeat(200_000)).as_bytes()).unwrap();
    let db = place.open();
    while db.query_value::<i64>("SELECT count(*) FROM t", ()).wait().unwrap() == 0 {}
    // It waits for more of its input.
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::thread::spawn(move || while std::io::Write::write_all(&mut input, &b"1\n".repeat(10_000)).is_ok() {});
    let ended = child.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    let rows: i64 = db.query_value("SELECT count(*) FROM t", ()).wait().unwrap();
    assert_eq!((ended.status.code(), error), (Some(130), format!("{rows} rows are in the table\n")));
    db.close().wait().unwrap();
}
