//! The end of a process that has an encrypted database open: SQLCipher frees its memory then, whatever still runs.
//!
//! The children are this program, which runs the ignored tests below.

use std::process::Command;
use std::time::Duration;

use flatwater::Options;
use flatwater::options::Key;

use super::EncryptedFile;
use crate::support::{as_child, run};

const PATH: &str = "FLATWATER_EXIT_PATH";

fn options() -> Options {
    Options::new(std::env::var_os(PATH).expect("the parent says where")).key(Key::raw(&[3; 32]))
}

#[test]
#[ignore = "runs as the child of the test below"]
fn busy_child() {
    run(async {
        let db = options().tuning(|t| t.reader_cache_bytes(0).writer_cache_bytes(0)).open().await.unwrap();
        db.execute_script("CREATE TABLE IF NOT EXISTS t (a)").await.unwrap();
        for _ in 0..4 {
            let db = db.clone();
            tokio::spawn(async move {
                while db.execute("INSERT INTO t VALUES (randomblob(5000))", ()).await.is_ok() {
                    let _ = db.query("SELECT sum(length(a)) FROM t", ()).await;
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(rand::random_range(0..60))).await;
        std::process::exit(7);
    });
}

#[test]
#[ignore = "runs as the child of the test below"]
fn leaving_child() {
    run(async {
        let db = options().open().await.unwrap();
        db.execute_script("CREATE TABLE IF NOT EXISTS t (a); INSERT INTO t VALUES (randomblob(100000))").await.unwrap();
        drop(db);
        std::process::exit(7);
    });
}

fn exits_well(mut child: Command, rounds: usize) {
    let file = EncryptedFile::unchecked();
    for round in 0..rounds {
        let output = child.env(PATH, file.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "round {round}: {:?} {said}", output.status);
    }
    run(async {
        let db = Options::new(file.path()).key(Key::raw(&[3; 32])).open().await.unwrap();
        assert_eq!(db.query_value::<String>("PRAGMA integrity_check", ()).await.unwrap(), "ok");
    });
}

#[test]
fn a_process_that_exits_in_the_middle_of_its_work_ends_as_it_wants_to() {
    exits_well(as_child("encryption::exits::busy_child"), 40);
}

#[test]
fn a_process_that_drops_its_last_handle_and_exits_ends_as_it_wants_to() {
    exits_well(as_child("encryption::exits::leaving_child"), 40);
}
