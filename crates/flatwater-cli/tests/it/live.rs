//! `flatwater live`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::support::Place;

struct Live {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Live {
    fn new(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command();
        command.args(["live", "app.db"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> String {
        self.lines.next().expect("the command prints a line").unwrap()
    }

    fn end(mut self) -> i32 {
        assert!(self.lines.next().is_none());
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn changes_of_another_process_are_printed() {
    let place = Place::with("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
    let db = place.open();
    let mut live = Live::new(&place, &["SELECT id, a FROM t WHERE a < ?", "9", "--count", "4"]);
    assert_eq!(live.next(), r#"{"change":"full","rows":[]}"#);
    db.execute("INSERT INTO t VALUES (1, 5)", ()).wait().unwrap();
    assert_eq!(live.next(), r#"{"change":"insert","row":{"id":1,"a":5}}"#);
    db.execute("INSERT INTO t VALUES (2, 99)", ()).wait().unwrap();
    db.execute("UPDATE t SET a = 6 WHERE id = 1", ()).wait().unwrap();
    assert_eq!(live.next(), r#"{"change":"update","row":{"id":1,"a":6},"old":{"id":1,"a":5}}"#);
    db.execute("DELETE FROM t", ()).wait().unwrap();
    assert_eq!(live.next(), r#"{"change":"delete","row":{"id":1,"a":6}}"#);
    assert_eq!(live.end(), 0);
    db.close().wait().unwrap();
}

#[test]
fn a_result_without_a_key_is_printed_whole() {
    let place = Place::with("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
    let db = place.open();
    let mut live = Live::new(&place, &["SELECT count(*) AS n FROM t", "-o", "text"]);
    assert_eq!((live.next(), live.next()), ("-- 1 rows".to_owned(), "  n=0".to_owned()));
    db.execute("INSERT INTO t VALUES (1, 5)", ()).wait().unwrap();
    assert_eq!((live.next(), live.next()), ("-- 1 rows".to_owned(), "  n=1".to_owned()));
    let interrupt = std::process::Command::new("kill").args(["-INT", &live.child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(live.end(), 130);
    db.close().wait().unwrap();
}

#[test]
fn a_statement_that_cannot_be_live_is_an_error() {
    let place = Place::with("CREATE TABLE t (id INTEGER PRIMARY KEY, a)");
    let error = place.run(&["live", "app.db", "DELETE FROM t"]).failed(1);
    assert!(error.starts_with("error: "), "{error}");
    let plain = flatwater::rusqlite::Connection::open(place.path("plain.db")).unwrap();
    plain.execute_batch("CREATE TABLE t (a)").unwrap();
    let error = place.run(&["live", "plain.db", "SELECT * FROM t"]).failed(1);
    assert!(error.contains("in the journal mode delete"), "{error}");
}
