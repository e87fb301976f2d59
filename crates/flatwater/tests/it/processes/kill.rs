//! kill -9 at any moment: every acknowledged write is present and complete, and the file is sound.
//!
//! The child is this program, which runs the ignored test below. `FLATWATER_KILLS` sets the number of rounds.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use flatwater::{Database, Error, Options, params};
use rand::RngExt;

use crate::support::{TestFile, as_child, integrity, run};

const PATH: &str = "FLATWATER_KILL_PATH";
const FIRST: &str = "FLATWATER_KILL_FIRST";
const TASKS: &str = "FLATWATER_KILL_TASKS";

/// Writes a pair of rows that must be present together, or one row.
async fn write_pair(db: &Database, number: i64, way: i64) -> Result<(), Error> {
    const PAIR: &str = "INSERT INTO pair SELECT ?1, value FROM json_each('[1,2]')";
    match way {
        0 => {
            let half = "INSERT INTO pair VALUES (?, ?)";
            db.batch([(half, params![number, 1]), (half, params![number, 2])]).await.map(drop)
        }
        1 => {
            db.transaction(async |tx| {
                tx.execute("INSERT INTO pair VALUES (?, 1)", (number,)).await?;
                tx.execute("INSERT INTO pair VALUES (?, 2)", (number,)).await.map(drop)
            })
            .await
        }
        2 => db.execute_many("INSERT INTO pair VALUES (?, ?)", [(number, 1), (number, 2)]).await.map(drop),
        // Short enough for its caller's thread.
        way if way % 2 == 0 => db.execute("INSERT INTO one VALUES (?)", (number,)).await.map(drop),
        _ => db.execute(PAIR, (number,)).await.map(drop),
    }
}

#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let path = std::env::var(PATH).expect("the parent says where");
    let number = |name| std::env::var(name).unwrap().parse::<i64>().unwrap();
    let (first, count) = (number(FIRST), number(TASKS));
    run(async {
        let db = Options::new(path).open().await.unwrap();
        let out = Arc::new(Mutex::new(std::io::stdout()));
        let tasks: Vec<_> = (0..count)
            .map(|task| {
                let (db, out) = (db.clone(), out.clone());
                tokio::spawn(async move {
                    for step in 0.. {
                        let number = first + step * count + task;
                        write_pair(&db, number, number % 20).await.unwrap();
                        let mut out = out.lock().unwrap();
                        writeln!(out, "ack {number}").unwrap();
                        out.flush().unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn spawn(path: &Path, first: i64, tasks: i64) -> Child {
    as_child("processes::kill::child")
        .env(PATH, path)
        .env(FIRST, first.to_string())
        .env(TASKS, tasks.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_acknowledged_is_lost_to_kill_9() {
    kill(16);
}

/// Each write begins when the previous one is acknowledged, so most run inline.
#[test]
fn nothing_acknowledged_one_by_one_is_lost_to_kill_9() {
    kill(1);
}

fn kill(tasks: i64) {
    let rounds = std::env::var("FLATWATER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let file = TestFile::new();
    file.plain()
        .execute_batch(
            "PRAGMA journal_mode = wal; CREATE TABLE pair (n, half, PRIMARY KEY (n, half)); \
             CREATE TABLE one (n PRIMARY KEY)",
        )
        .unwrap();
    let mut acknowledged: HashSet<i64> = HashSet::new();
    let mut first = 0;
    for round in 0..rounds {
        let mut child = spawn(&file.path(), first, tasks);
        // Killed after a random number of acknowledgements, the first rounds while it still opens the file.
        let until = if round < 3 { 0 } else { rand::rng().random_range(1..3000) };
        let mut seen = 0;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut note = |line: &str| {
            if let Some(number) = line.strip_prefix("ack ").and_then(|text| text.parse::<i64>().ok()) {
                acknowledged.insert(number);
                first = first.max(number + 1);
                return 1;
            }
            0
        };
        while seen < until {
            match lines.next() {
                Some(line) => seen += note(&line.unwrap()),
                None => panic!("the child ended by itself: {:?}", child.wait()),
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What was acknowledged before the kill may still be in the pipe; a torn last line is no acknowledgement.
        lines.map_while(Result::ok).for_each(|line| {
            note(&line);
        });
        first += 1000;
        check(&file, &acknowledged, round);
    }
    assert!(acknowledged.len() > rounds * 10, "hardly anything was written: {}", acknowledged.len());
}

fn check(file: &TestFile, acknowledged: &HashSet<i64>, round: usize) {
    let plain = file.plain();
    assert_eq!(integrity(&plain), "ok", "round {round}");
    let halves: i64 = plain
        .query_row("SELECT count(*) FROM (SELECT n FROM pair GROUP BY n HAVING count(*) <> 2)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(halves, 0, "round {round}: half of a write is there");
    let mut statement = plain.prepare("SELECT n FROM pair UNION SELECT n FROM one").unwrap();
    let found: HashSet<i64> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let lost: Vec<_> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "round {round}: acknowledged and lost: {lost:?}");
}
