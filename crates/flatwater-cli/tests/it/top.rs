//! `flatwater top`.

#![cfg(target_os = "linux")]

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
