//! `flatwater check`, `doctor`, `backup`, `checkpoint`, `completions` and `man`.

use flatwater::rusqlite;

use crate::support::Place;

const SCHEMA: &str = "CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT); CREATE INDEX by_t ON a (t);
    CREATE TABLE b (a REFERENCES a); INSERT INTO a (t) VALUES ('x'), ('y');";

#[test]
fn a_sound_database_has_no_fault() {
    let place = Place::with(SCHEMA);
    let found = place.run(&["check", "app.db"]).ok();
    // Another test may have forked this process while the database was open here, and not have begun its program yet.
    let found: String = found.split_inclusive('\n').filter(|line| !line.starts_with("note process")).collect();
    let expected = "ok   WAL: empty\nok   integrity: every page is as it should be\n\
        ok   foreign keys: every row has its parent\n";
    assert_eq!(found, expected);
    assert!(place.run(&["check", "app.db", "--quick", "--table", "a"]).ok().contains("integrity"));
}

#[test]
fn a_fault_has_an_exit_code_of_its_own() {
    let place = Place::with(SCHEMA);
    let plain = rusqlite::Connection::open(place.path("app.db")).unwrap();
    plain.execute_batch("PRAGMA foreign_keys = OFF; INSERT INTO b VALUES (7), (8)").unwrap();
    drop(plain);
    let ended = place.run(&["check", "app.db"]);
    assert!(ended.out.contains("fault foreign keys: 2 rows of b have no parent in a"), "{ended:?}");
    assert_eq!(ended.code, 3);
    assert_eq!(place.run(&["check", "app.db", "--table", "a"]).code, 0);

    // An index that does not have what its table has.
    let plain = rusqlite::Connection::open(place.path("app.db")).unwrap();
    let sql = "DELETE FROM b; PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = 'CREATE INDEX by_t ON a (id)' WHERE name = 'by_t'";
    plain.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false).unwrap();
    plain.execute_batch(sql).unwrap();
    drop(plain);
    let ended = place.run(&["check", "app.db"]);
    assert!(ended.out.contains("fault integrity: "), "{ended:?}");
    assert_eq!(ended.code, 3);
}

#[cfg(target_os = "linux")]
#[test]
fn what_endangers_a_file_is_found() {
    let place = Place::with(SCHEMA);
    let db = place.open();
    db.query("SELECT 1", ()).wait().unwrap();
    let open = place.run(&["check", "app.db"]).ok();
    assert!(open.contains(&format!("process {} (", std::process::id())), "{open}");
    std::fs::rename(place.path("app.db"), place.path("old.db")).unwrap();
    db.close().wait().unwrap();

    let place = Place::with(SCHEMA);
    let held = std::fs::File::open(place.path("app.db")).unwrap();
    std::fs::copy(place.path("app.db"), place.path("new.db")).unwrap();
    std::fs::rename(place.path("new.db"), place.path("app.db")).unwrap();
    std::fs::hard_link(place.path("app.db"), place.path("other.db")).unwrap();
    place.write("app.db.x.partial", "xy");
    let ended = place.run(&["check", "app.db"]);
    assert_eq!(ended.code, 3);
    for text in ["was replaced: what it writes is lost", "more than one hard link", "app.db.x.partial: of a backup"] {
        assert!(ended.out.contains(text), "{text}: {ended:?}");
    }
    drop(held);
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let place = Place::new();
    place.write("app.db", "no database, but a text of some length".repeat(40));
    let error = place.run(&["check", "app.db"]).failed(1);
    assert!(error.contains("SQLITE_NOTADB"), "{error}");
    let doctor = place.run(&["doctor", "app.db"]);
    assert_eq!(doctor.code, 3);
    assert!(doctor.out.contains("app.db is not a SQLite database\n"), "{doctor:?}");
    place.run(&["check", "nothing.db"]).failed(1);
}

#[test]
fn the_doctor_says_what_there_is() {
    let place = Place::with(SCHEMA);
    let report = place.run(&["doctor", "app.db"]).ok();
    let has = |name: &str, value: &str| report.contains(&format!("  {name:<14} {value}\n"));
    assert!(has("journal mode", "wal") && has("page size", "4096") && has("tables", "2"), "{report}");
    assert!(report.contains(rusqlite::version()), "{report}");
    let plain = rusqlite::Connection::open(place.path("plain.db")).unwrap();
    plain.execute_batch("CREATE TABLE t (a)").unwrap();
    drop(plain);
    let report = place.run(&["doctor", "plain.db"]).ok();
    assert!(report.contains("the journal mode is delete: a program that opens"), "{report}");
}

#[test]
fn a_backup_is_a_copy_in_a_new_file() {
    let place = Place::with(SCHEMA);
    place.run(&["query", "app.db", "PRAGMA user_version = 5"]).ok();
    for arguments in [&["backup", "app.db", "copy.db"][..], &["backup", "app.db", "small.db", "--compact"]] {
        let ended = place.run(arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(ended.err.contains(&format!(" bytes in {}", arguments[2])), "{ended:?}");
        let count = place.run(&["query", arguments[2], "SELECT count(*) FROM a", "--no-header"]).ok();
        assert_eq!(count, "2\n");
    }
    let again = place.run(&["backup", "app.db", "copy.db"]).failed(1);
    assert!(again.contains("copy.db"), "{again}");
}

#[test]
fn a_checkpoint_empties_the_wal() {
    let place = Place::with(SCHEMA);
    let plain = rusqlite::Connection::open(place.path("app.db")).unwrap();
    plain.execute_batch("PRAGMA wal_autocheckpoint = 0; INSERT INTO a (t) VALUES ('z')").unwrap();
    assert!(place.path("app.db-wal").metadata().unwrap().len() > 0);
    let done = place.run(&["checkpoint", "app.db", "--mode", "passive"]).ok();
    assert!(done.ends_with(" frames are copied\n"), "{done}");
    place.run(&["checkpoint", "app.db"]).ok();
    assert_eq!(place.path("app.db-wal").metadata().unwrap().len(), 0);
    plain.execute_batch("INSERT INTO a (t) VALUES ('z'); BEGIN; SELECT * FROM a").unwrap();
    plain.execute_batch("PRAGMA journal_mode").unwrap();
}

#[test]
fn completions_and_the_manual_name_every_command() {
    let place = Place::new();
    let bash = place.run(&["completions", "bash"]).ok();
    let page = place.run(&["man"]).ok();
    let help = place.run(&["--help"]).ok();
    let names = ["query", "live", "check", "doctor", "backup", "checkpoint", "migrate", "import", "export"];
    for name in names {
        for text in [&bash, &page, &help] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
    assert!(help.contains("Exit codes: 0 done; 1 an error"), "{help}");
    place.run(&["man", "--dir", "."]).ok();
    assert!(place.read("flatwater-query.1").contains("standard input"));
    place.run(&["nothing"]).failed(2);
}

#[test]
fn the_bench_has_both_sides_of_each_lane() {
    let place = Place::new();
    let chart = place.run(&["bench", "--seconds", "0.01", "--dir", "."]).ok();
    assert_eq!((chart.matches("\n  SQLite ").count(), chart.matches("\n  flatwater ").count()), (5, 5), "{chart}");
    assert_eq!(std::fs::read_dir(place.folder.path()).unwrap().count(), 0, "its files are removed");
}
