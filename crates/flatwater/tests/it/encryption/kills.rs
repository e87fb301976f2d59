//! kill -9 while an encrypted database is written: every acknowledged write is there, and the file is sound.
//!
//! The child is this program, which runs the ignored test below. `FLATWATER_KILLS` sets the number of rounds.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use flatwater::Options;
use flatwater::options::Key;
use rand::RngExt;

use super::{EncryptedFile, PASSPHRASE, with_sqlcipher};
use crate::support::{Killed, as_child, integrity, run};

const PATH: &str = "FLATWATER_KILL_PATH";
const FIRST: &str = "FLATWATER_KILL_FIRST";

#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let path = std::env::var(PATH).expect("the parent says where");
    let first: i64 = std::env::var(FIRST).unwrap().parse().unwrap();
    run(async {
        let db = Options::new(path).key(Key::text(PASSPHRASE)).open().await.unwrap();
        db.execute_script("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, filler)").await.unwrap();
        for number in first.. {
            db.execute("INSERT INTO t VALUES (?, randomblob(500))", (number,)).await.unwrap();
            if number % 50 == 0 {
                db.checkpoint(flatwater::calls::CheckpointMode::Passive).await.unwrap();
            }
            println!("ack {number}");
            std::io::stdout().flush().unwrap();
        }
    });
}

#[test]
#[ignore = "runs as the child of the test below"]
fn rekeying_child() {
    let path = std::env::var(PATH).expect("the parent says where");
    run(async {
        let opened = |key| Options::new(&path).key(Key::raw(&[key; 32])).open();
        let (db, mut key) = match opened(0).await {
            Ok(db) => (db, 0),
            Err(_) => (opened(1).await.unwrap(), 1),
        };
        loop {
            println!("from {key}");
            std::io::stdout().flush().unwrap();
            key = 1 - key;
            db.rekey(Key::raw(&[key; 32])).await.unwrap();
        }
    });
}

/// The file has one of both keys as a whole.
#[test]
fn a_change_of_the_key_that_is_killed_leaves_one_of_both_keys() {
    let rounds = std::env::var("FLATWATER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let file = EncryptedFile::unchecked();
    let raw = |key: u8| Options::new(file.path()).key(Key::raw(&[key; 32]));
    run(async {
        let db = raw(0).open().await.unwrap();
        db.execute_script(
            "CREATE TABLE t (a); INSERT INTO t SELECT randomblob(100000) FROM json_each('[1,2,3,4,5,6,7,8]')",
        )
        .await
        .unwrap();
        db.close().await.unwrap();
    });
    let mut seen = [0, 0];
    for round in 0..rounds {
        let mut child = as_child("encryption::kills::rekeying_child");
        let mut child = Killed(child.env(PATH, file.path()).stdout(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let changes = rand::rng().random_range(1..4);
        let mut begun = 0;
        while begun < changes {
            begun += usize::from(lines.next().expect("the child ended by itself").unwrap().starts_with("from"));
        }
        std::thread::sleep(std::time::Duration::from_micros(rand::rng().random_range(0..40_000)));
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        let opens = [0, 1].map(|key| {
            run(async {
                let Ok(db) = raw(key).open().await else { return false };
                let sound: String = db.query_value("PRAGMA integrity_check", ()).await.unwrap();
                assert_eq!(sound, "ok", "round {round}");
                let bytes: i64 = db.query_value("SELECT sum(length(a)) FROM t", ()).await.unwrap();
                assert_eq!(bytes, 800_000);
                db.close().await.unwrap();
                true
            })
        });
        assert_ne!(opens[0], opens[1], "round {round}");
        seen[usize::from(opens[1])] += 1;
    }
    println!("old and new: {seen:?}");
}

#[test]
fn nothing_acknowledged_is_lost_to_kill_9_in_an_encrypted_file() {
    let rounds = std::env::var("FLATWATER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    let file = EncryptedFile::new();
    let mut acknowledged = HashSet::new();
    let mut first: i64 = 1;
    for round in 0..rounds {
        let mut child = as_child("encryption::kills::child");
        child.env(PATH, file.path()).env(FIRST, first.to_string()).stdout(Stdio::piped());
        let mut child = Killed(child.spawn().unwrap());
        // The first rounds are killed while they still open or create the file.
        let until = if round < 3 { 0 } else { rand::rng().random_range(1..400) };
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let mut seen = 0;
        while seen < until {
            let line = lines.next().expect("the child ended by itself").unwrap();
            if let Some(number) = line.strip_prefix("ack ").and_then(|text| text.parse::<i64>().ok()) {
                acknowledged.insert(number);
                seen += 1;
            }
        }
        if until == 0 {
            std::thread::sleep(std::time::Duration::from_millis(rand::rng().random_range(0..400)));
        }
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        acknowledged
            .extend(lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("ack ")?.parse::<i64>().ok()));
        let plain = with_sqlcipher(&file.path(), PASSPHRASE);
        assert_eq!(integrity(&plain), "ok", "round {round}");
        let has_table = plain.prepare("SELECT n FROM t");
        let Ok(mut numbers) = has_table else { continue };
        let kept: HashSet<i64> = numbers.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let lost: Vec<_> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
        first = kept.iter().max().map_or(1, |last| last + 1);
    }
    assert!(!acknowledged.is_empty());
}
