//! `flatwater shell`, and what differs on a terminal.

use crate::support::Place;
use crate::terminal::Terminal;

const SCHEMA: &str = "CREATE TABLE songs (id INTEGER PRIMARY KEY, title TEXT);
    CREATE INDEX by_title ON songs (title); CREATE VIEW titles AS SELECT title FROM songs;
    INSERT INTO songs (title) VALUES ('Ebb'), ('Flood');";

fn script(place: &Place, text: &str) -> String {
    place.run_with_input(&["shell", "app.db"], text).ok()
}

#[test]
fn a_script_has_commands_and_statements() {
    let place = Place::with(SCHEMA);
    let of = |text: &str| script(&place, text);
    assert_eq!(of(".tables\n.indexes songs\n"), "songs\ntitles\nby_title\n");
    assert_eq!(of(".tables so%\n.schema titles\n"), "songs\nCREATE VIEW titles AS SELECT title FROM songs;\n");
    assert_eq!(of(".mode jsonl\nSELECT id\nFROM songs\nLIMIT 1;\n.quit\nSELECT 2;"), "{\"id\":1}\n");
    assert_eq!(of(".headers off\nSELECT 1; SELECT 2; -- no semicolon behind the last\nSELECT 3"), "1\n2\n3\n");
    assert!(of(".timer on\nSELECT 1;").contains("Run Time: real 0."));
    assert!(of(".help").contains(".import"));
    assert_eq!(of(".changes on\nUPDATE songs SET title = title;"), "changes: 2   total_changes: 2\n");
    assert!(of(".databases").starts_with("main: "));
}

#[test]
fn a_transaction_is_that_of_the_shell() {
    let place = Place::with(SCHEMA);
    let text = ".headers off\nBEGIN;\nDELETE FROM songs;\nCREATE TEMP TABLE t AS SELECT 1 AS a;\nROLLBACK;\n\
        SELECT count(*) FROM songs;\nCREATE TEMP TABLE t AS SELECT 5 AS a;\nSELECT a FROM t;\n";
    assert_eq!(script(&place, text), "2\n5\n");
}

#[test]
fn files_are_read_and_written() {
    let place = Place::with(SCHEMA);
    place.write("more.sql", "INSERT INTO songs (title) VALUES ('Slack');\n.headers off\nSELECT count(*) FROM songs;\n");
    place.write("goods.csv", "name,price\ntea,2\n");
    place.write("more.csv", "milk,\n");
    assert_eq!(script(&place, ".read more.sql\n"), "3\n");
    let text = ".import --csv goods.csv goods\n.import more.csv goods\n.headers off\n.once out.csv\n\
        SELECT * FROM goods;\nSELECT typeof(price) FROM goods;\n.output all.csv\nSELECT 1;\nSELECT 2;\n";
    assert_eq!(script(&place, text), "integer\ntext\n");
    assert_eq!((place.read("out.csv"), place.read("all.csv")), ("tea,2\nmilk,\"\"\n".to_owned(), "1\n2\n".to_owned()));
    let dump = script(&place, ".dump goods\n");
    assert!(dump.contains("INSERT INTO \"goods\" VALUES('tea',2);"), "{dump}");
}

#[test]
fn an_error_ends_a_script() {
    let place = Place::with(SCHEMA);
    let ended = place.run_with_input(&["shell", "app.db"], "SELECT 1;\nSELECT x\nFROM songs;\nSELECT 2;\n");
    assert_eq!((&*ended.out, ended.code), ("1\n1\n", 1));
    assert!(ended.err.contains("line 1: SELECT x"), "{ended:?}");
    place.run_with_input(&["shell", "app.db"], ".nothing\n").failed(2);
    let refused = place.run_with_input(&["shell", "app.db", "--read-only"], "DELETE FROM songs;").failed(1);
    assert!(refused.contains("read"), "{refused}");
}

#[cfg(unix)]
#[test]
fn statements_are_typed_over_several_lines() {
    let place = Place::with(SCHEMA);
    let terminal = Terminal::new(&place, &["shell", "app.db"], &[]);
    terminal.until_text("flatwater> ");
    terminal.typed("SELECT count(*) AS songs\r");
    terminal.until_text("...> ");
    terminal.typed("FROM songs;\r");
    let screen = terminal.until_text("└───────┘");
    assert!(screen.contains("│ songs │\n├───────┤\n│     2 │"), "{screen}");
    terminal.typed("BEGIN;\r");
    terminal.until_text("flatwater*> ");
    terminal.typed("ROLLBACK; SELECT nmae FROM songs;\r");
    terminal.until_text("^");
    terminal.typed(".quit\r");
    assert_eq!(terminal.end(), 0);

    // The next shell has the history of this one.
    let terminal = Terminal::new(&place, &["shell", "app.db"], &[]);
    terminal.until_text("flatwater> ");
    terminal.typed("\x1b[A\x1b[A");
    terminal.until_text("SELECT nmae");
    terminal.typed("\x03");
    terminal.until_prompt();
    terminal.typed("\x04");
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[test]
fn names_are_completed() {
    let place = Place::with(SCHEMA);
    let terminal = Terminal::new(&place, &["shell", "app.db"], &[]);
    terminal.until_text("flatwater> ");
    terminal.typed("SELECT tit\t");
    terminal
        .until("a completion", |screen| screen.contents().contains("titles") && screen.contents().contains("title "));
    terminal.typed("\x03");
    terminal.until_prompt();
    terminal.typed("SELECT max(son\t");
    terminal.until_text("max(songs");
    terminal.typed("\x03");
    terminal.until_prompt();
    terminal.typed("\x04");
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_statement_and_not_the_shell() {
    let place = Place::with(SCHEMA);
    let terminal = Terminal::new(&place, &["shell", "app.db"], &[]);
    terminal.until_text("flatwater> ");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n;";
    for round in [1, 2] {
        // Once the first result is there, the terminal is no longer that of the editor.
        terminal.typed(&format!("SELECT 'begun ' || {round}; {endless}\r"));
        terminal.until_text(&format!("│ begun {round} "));
        terminal.typed("\x03");
        terminal.until("the end of it", |screen| screen.contents().matches("interrupted").count() == round);
        terminal.until_prompt();
    }
    terminal.typed("SELECT 40 + 2 AS answer;\r");
    let screen = terminal.until_text("│     42 │");
    assert_eq!(screen.matches("interrupted").count(), 2, "{screen}");
    terminal.typed(".exit\r");
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[test]
fn a_terminal_has_boxes_and_colours() {
    let place = Place::with(SCHEMA);
    let terminal = Terminal::new(&place, &["query", "app.db", "SELECT title FROM songs; SELECT x"], &[]);
    terminal.until("the result", |screen| screen.contents().contains("│ Ebb   │"));
    terminal.until("a red error", |screen| {
        let is_red = |row| screen.cell(row, 0).is_some_and(|cell| cell.fgcolor() == vt100::Color::Idx(1));
        (0..20).any(|row| {
            is_red(row) && screen.rows(0, 100).nth(row.into()).is_some_and(|line| line.starts_with("error:"))
        })
    });
    assert_eq!(terminal.end(), 1);
    let plain = Terminal::new(&place, &["query", "app.db", "SELECT x"], &[("NO_COLOR", "1")]);
    plain.until("an error", |screen| {
        screen.contents().starts_with("error:")
            && screen.cell(0, 0).is_some_and(|cell| cell.fgcolor() == vt100::Color::Default)
    });
    assert_eq!(plain.end(), 1);
}

#[cfg(unix)]
#[test]
fn a_value_cannot_move_the_cursor() {
    let place = Place::with("CREATE TABLE t (a); INSERT INTO t VALUES ('x' || char(27) || '[2J' || char(10) || 'y')");
    let terminal = Terminal::new(&place, &["query", "app.db", "SELECT a FROM t"], &[]);
    terminal.until_text("│ x\\u{1b}[2J\\ny │");
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[test]
fn progress_is_shown_on_a_terminal() {
    let place = Place::with("CREATE TABLE t (a)");
    let terminal = Terminal::new(&place, &["import", "app.db", "-", "t"], &[]);
    terminal.until_text("importing");
    terminal.typed("a\r1\r2\r\x04");
    terminal.until_text("2 rows into t");
    assert_eq!(terminal.end(), 0);
}

#[cfg(unix)]
#[test]
fn changes_have_their_signs_on_a_terminal() {
    let place = Place::with(SCHEMA);
    let db = place.open();
    let terminal = Terminal::new(&place, &["live", "app.db", "SELECT id, title FROM songs"], &[]);
    terminal.until_text("-- 2 rows\n  id=1  title=Ebb");
    db.execute("UPDATE songs SET title = 'Low' WHERE id = 1", ()).wait().unwrap();
    terminal.until_text("~ id=1  title=Low");
    db.execute("DELETE FROM songs WHERE id = 2", ()).wait().unwrap();
    terminal.until_text("- id=2  title=Flood");
    terminal.typed("\x03");
    assert_eq!(terminal.end(), 130);
    db.close().wait().unwrap();
}
