//! Many processes open one new file at the same moment: all succeed, regardless of which one creates or closes the
//! file.
//!
//! The children are this program, which runs the ignored test below. They start when the parent releases a lock.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Stdio};

use flatwater::Options;

use crate::support::{as_child, integer, integrity};

const GATE: &str = "FLATWATER_GATE";
const PROCESSES: usize = 16;
const ROUNDS: usize = 50;

/// For each path it reads: waits at the gate, opens the file, writes a row. Closes the file at once or, if the path
/// ends with `stay.db`, when it reads the next path.
#[test]
#[ignore = "runs as the child of the test below"]
fn child() {
    let gate = File::open(std::env::var_os(GATE).expect("the parent says where")).unwrap();
    let mut stays = None;
    for path in std::io::stdin().lines().map(Result::unwrap) {
        drop(stays.take());
        println!("ready");
        gate.lock_shared().unwrap();
        let db = Options::new(&path).open().wait().unwrap();
        db.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
        db.execute("INSERT INTO t VALUES (?)", (i64::from(std::process::id()),)).wait().unwrap();
        if path.ends_with("stay.db") {
            stays = Some(db);
        } else {
            db.close().wait().unwrap();
        }
        gate.unlock().unwrap();
        println!("wrote");
    }
}

struct Opener {
    child: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Opener {
    fn start(gate: &std::path::Path) -> Self {
        let mut child = as_child("processes::opening_together::child")
            .env(GATE, gate)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, says }
    }

    fn tell(&mut self, path: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{path}").unwrap();
    }

    /// Waits until the child prints `word`; the test harness prints more.
    fn hear(&mut self, word: &str) {
        let said = self.says.by_ref().map(Result::unwrap).find(|line| line.ends_with(word));
        assert!(said.is_some(), "a process failed to open the file or to write");
    }
}

impl Drop for Opener {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let ended = self.child.wait().unwrap();
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

#[test]
fn many_processes_that_open_a_new_file_at_once_all_get_in() {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    let lock = File::create(&gate).unwrap();
    let mut openers: Vec<Opener> = (0..PROCESSES).map(|_| Opener::start(&gate)).collect();
    for round in 0..ROUNDS {
        let path = directory.path().join(format!("{round}-{}.db", if round % 2 == 0 { "close" } else { "stay" }));
        lock.lock().unwrap();
        openers.iter_mut().for_each(|opener| opener.tell(path.to_str().unwrap()));
        openers.iter_mut().for_each(|opener| opener.hear("ready"));
        lock.unlock().unwrap();
        openers.iter_mut().for_each(|opener| opener.hear("wrote"));
        let plain = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(integrity(&plain), "ok");
        let rows = integer(&plain, "SELECT count(DISTINCT a) FROM t");
        assert_eq!(usize::try_from(rows), Ok(PROCESSES), "round {round}");
    }
}
