//! `flatwater top`.

#![cfg(target_os = "linux")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flatwater::Options;
use flatwater::rusqlite::Connection;

use crate::support::Place;
use crate::terminal::Terminal;

/// A database that this process reads, and to which it then writes: the reader is behind.
fn read_and_written(place: &Place) -> [Connection; 2] {
    let [reader, writer] = [(); 2].map(|()| Connection::open(place.path("app.db")).unwrap());
    writer.execute_batch("PRAGMA wal_autocheckpoint = 0; INSERT INTO t VALUES (1)").unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
    writer.execute_batch("INSERT INTO t VALUES (2)").unwrap();
    [reader, writer]
}

#[test]
fn who_holds_up_the_wal_is_shown() {
    let place = Place::with("CREATE TABLE t (a)");
    place.run(&["top", "app.db", "--once"]).failed(1);
    let [reader, writer] = read_and_written(&place);
    let own = format!("({})", std::process::id());
    let shown = place.run(&["top", "app.db", "--once"]).ok();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].contains(" frames, 0 of them copied"), "{shown}");
    assert_eq!(lines[2], "writes  nobody", "{shown}");
    assert!(lines[4].contains(&own) && lines[4].contains("frames behind, which cannot be copied"), "{shown}");
    reader.execute_batch("COMMIT").unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let shown = place.run(&["top", "app.db", "--once"]).ok();
    assert!(shown.lines().nth(2).unwrap().contains(&own), "{shown}");
}

#[test]
fn the_screen_is_left_as_it_was() {
    let place = Place::with("CREATE TABLE t (a)");
    let [reader, _writer] = read_and_written(&place);
    let terminal = Terminal::new(&place, &["top", "app.db", "--interval", "0.05"], &[]);
    terminal.until_text("which cannot be copied");
    reader.execute_batch("COMMIT").unwrap();
    terminal.until("no reader", |screen| screen.alternate_screen() && screen.contents().contains("reads   nobody"));
    terminal.typed("q");
    terminal.until("the screen before", |screen| !screen.alternate_screen());
    assert_eq!(terminal.end(), 0);
}

const PATH: &str = "FLATWATER_OBSERVED_PATH";

#[test]
#[ignore = "the child of another test"]
fn a_program_that_shows_its_figures() {
    let path = std::env::var_os(PATH).expect("the parent says where");
    let db = Options::new(path).tuning(|tuning| tuning.observe(true)).open().wait().unwrap();
    let transaction = db.begin().wait().unwrap();
    transaction.execute("INSERT INTO t VALUES (?)", ("a bound secret",)).wait().unwrap();
    let snapshot = db.snapshot().wait().unwrap();
    snapshot.query("SELECT a FROM t", ()).wait().unwrap();
    let _waits = std::thread::spawn(move || db.execute("DELETE FROM t", ()).wait());
    loop {
        std::thread::park();
    }
}

/// A program that shows its figures until it is killed.
fn program(place: &Place) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["top::a_program_that_shows_its_figures", "--exact", "--ignored", "--nocapture"]);
    command.env(PATH, place.path("app.db")).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_program_shows_its_queue_its_oldest_read_and_who_blocks() {
    let place = Place::with("CREATE TABLE t (a)");
    let mut child = program(&place);
    let terminal = Terminal::new(&place, &["top", "app.db", "--interval", "0.05"], &[]);
    terminal.until_text("queue   1 writes and 0 reads wait; 1 readers are held");
    terminal.until_text("  oldest  a read of ");
    let screen = terminal.until_text("  writer  held by a transaction, whose last step was `INSERT INTO t VALUES (?)`");
    assert!(screen.contains(&format!("({})", child.id())) && screen.contains(" calls, half within "), "{screen}");
    child.kill().unwrap();
    child.wait().unwrap();
    let screen = terminal.until_text("left over by a program that was killed");
    assert!(!screen.contains("a bound secret") && !screen.contains("queue "), "{screen}");
    terminal.typed("q");
    assert_eq!(terminal.end(), 0);
    for (command, text) in
        [("check", "figures of a program that was killed"), ("doctor", ", of a program that was killed")]
    {
        let shown = place.run(&[command, "app.db"]);
        assert!(shown.out.contains(text), "{shown:?}");
    }
}

#[test]
fn two_programs_are_shown_at_once() {
    let place = Place::with("CREATE TABLE t (a)");
    let open = |place: &Place| Options::new(place.path("app.db")).tuning(|t| t.observe(true)).open().wait().unwrap();
    let mut child = program(&place);
    let shown = || place.run(&["top", "app.db", "--once"]).out;
    let until = |fits: &dyn Fn(&str) -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        while !fits(&shown()) {
            assert!(Instant::now() < end, "{}", shown());
        }
    };
    until(&|shown| shown.contains("held by a transaction"));
    let db = open(&place);
    let rows: u64 = db.query_value("SELECT count(*) FROM t", ()).wait().unwrap();
    let own = format!("({})\n", std::process::id());
    until(&|shown| {
        shown.contains(&own) && shown.contains("held by a transaction") && shown.contains("query           1 calls")
    });
    db.close().wait().unwrap();
    assert!(!shown().contains(&own) && rows == 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let db = open(&place);
    until(&|shown| shown.contains(&own) && !shown.contains("left over"));
    db.close().wait().unwrap();
}
