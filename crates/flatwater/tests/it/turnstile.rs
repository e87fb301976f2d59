//! Several processes that write to one file: each gets its turns, whatever happens to the others and to the file `<db>-turn`.
//!
//! The children are this program, which runs the ignored test below: each writes until it finds the file `stop`, and then
//! closes the database. What they have committed is counted in the database. No test relies on how long a turn takes.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use flatwater::{Fairness, Options};

use crate::support::{Killed, TestFile, as_child, integer, integrity, run, wait_until};

const PATH: &str = "FLATWATER_TURNS_PATH";
const FAIRNESS: &str = "FLATWATER_TURNS_FAIRNESS";
/// More than fit into a turn.
const SOME: i64 = 200;

#[test]
#[ignore = "runs as a child of the tests below"]
fn writes_until_it_is_told_to_stop() {
    let path = PathBuf::from(std::env::var_os(PATH).expect("the parent says where"));
    let fairness = if std::env::var_os(FAIRNESS).is_some() { Fairness::Off } else { Fairness::Auto };
    let stop = path.with_file_name("stop");
    let db = Options::new(&path).fairness(fairness).open().wait().unwrap();
    let me = i64::from(std::process::id());
    while !stop.exists() {
        for _ in 0..10 {
            db.execute("INSERT INTO turns VALUES (?)", (me,)).wait().unwrap();
        }
    }
    db.close().wait().unwrap();
}

struct Writers {
    file: TestFile,
    children: Vec<Killed>,
}

impl Writers {
    fn start(count: usize) -> Self {
        let file = TestFile::new();
        file.plain().execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE turns (who)").unwrap();
        let mut writers = Self { file, children: Vec::new() };
        (0..count).for_each(|_| writers.start_another(true));
        writers
    }

    fn start_another(&mut self, is_fair: bool) {
        let mut child = as_child("turnstile::writes_until_it_is_told_to_stop");
        child.env(PATH, self.file.path()).stdout(Stdio::null());
        if !is_fair {
            child.env(FAIRNESS, "off");
        }
        self.children.push(Killed(child.spawn().unwrap()));
    }

    fn turn_file(&self) -> PathBuf {
        let mut name = self.file.path().into_os_string();
        name.push("-turn");
        name.into()
    }

    fn counts(&self) -> HashMap<i64, i64> {
        let plain = self.file.plain();
        let mut counts = plain.prepare("SELECT who, count(*) FROM turns GROUP BY who").unwrap();
        counts.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    /// Waits until each of these children has committed some more writes.
    fn progress(&mut self, of: &[usize]) {
        let ids: Vec<_> = of.iter().map(|child| i64::from(self.children[*child].0.id())).collect();
        let before = self.counts();
        let count = |counts: &HashMap<i64, i64>, id| counts.get(id).copied().unwrap_or(0);
        wait_until(|| {
            let now = self.counts();
            ids.iter().all(|id| count(&now, id) - count(&before, id) >= SOME)
        });
        for child in of {
            assert!(self.children[*child].0.try_wait().unwrap().is_none(), "a child has ended");
        }
    }

    fn all(&self) -> Vec<usize> {
        (0..self.children.len()).collect()
    }

    fn signal(&self, child: usize, signal: &str) {
        let id = self.children[child].0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Ends all, each with a clean close. Nothing is left, and the database is sound.
    fn end(mut self) {
        std::fs::write(self.file.path().with_file_name("stop"), "").unwrap();
        for child in &mut self.children {
            assert!(child.0.wait().unwrap().success());
        }
        assert_eq!(integrity(&self.file.plain()), "ok");
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() >= 4096)
}

#[test]
fn processes_that_write_take_turns_and_the_last_one_removes_the_file() {
    let mut writers = Writers::start(4);
    let turn_file = writers.turn_file();
    wait_until(|| is_file(&turn_file));
    let all = writers.all();
    writers.progress(&all);
    writers.end();
    assert!(!turn_file.exists());
}

#[test]
fn a_process_alone_makes_no_file() {
    let mut writers = Writers::start(1);
    writers.progress(&[0]);
    assert!(!writers.turn_file().exists());
    writers.end();
}

#[test]
fn processes_that_only_poll_make_no_file_and_get_their_writes_done_beside_the_others() {
    let mut writers = Writers::start(0);
    (0..2).for_each(|_| writers.start_another(false));
    writers.progress(&[0, 1]);
    assert!(!writers.turn_file().exists());
    (0..2).for_each(|_| writers.start_another(true));
    writers.progress(&[0, 1, 2, 3]);
    writers.end();
}

#[test]
fn those_that_are_killed_hold_up_nobody() {
    let mut writers = Writers::start(6);
    for _ in 0..5 {
        let all = writers.all();
        writers.progress(&all);
        drop(writers.children.drain(..3));
        let all = writers.all();
        writers.progress(&all);
        (0..3).for_each(|_| writers.start_another(true));
    }
    writers.end();
}

#[test]
fn one_that_is_stopped_holds_up_nobody_but_while_it_has_the_lock() {
    let mut writers = Writers::start(4);
    let all = writers.all();
    writers.progress(&all);
    let plain = writers.file.plain();
    plain.busy_timeout(Duration::ZERO).unwrap();
    for _ in 0..10 {
        // If it has the lock, it is stopped at another moment.
        while stops_with_the_lock(&writers, &plain) {
            writers.signal(0, "-CONT");
        }
        writers.progress(&[1, 2, 3]);
        writers.signal(0, "-CONT");
        writers.progress(&all);
    }
    writers.end();
}

/// Stops the first child. Returns false when the others go on, and true if the lock stays taken for that long.
fn stops_with_the_lock(writers: &Writers, plain: &rusqlite::Connection) -> bool {
    writers.signal(0, "-STOP");
    let stat = format!("/proc/{}/stat", writers.children[0].0.id());
    wait_until(|| std::fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().trim_start().starts_with('T'));
    let count = || integer(plain, "SELECT count(*) FROM turns");
    let (before, is_taken) = (count(), Cell::new(0));
    wait_until(|| {
        is_taken.set(if plain.execute_batch("BEGIN IMMEDIATE; ROLLBACK").is_ok() { 0 } else { is_taken.get() + 1 });
        is_taken.get() > 200 || count() > before + SOME
    });
    count() <= before + SOME
}

#[test]
fn whatever_is_done_to_the_file_costs_nobody_a_write() {
    let mut writers = Writers::start(4);
    let turn_file = writers.turn_file();
    let all = writers.all();
    let gone = |path: &Path| {
        let _ = std::fs::remove_file(path);
        let _ = std::fs::remove_dir(path);
    };
    for round in 0..3 {
        wait_until(|| is_file(&turn_file));
        writers.progress(&all);
        gone(&turn_file);
        writers.progress(&all);
        for _ in 0..20 {
            if let Ok(file) = std::fs::File::options().write(true).open(&turn_file) {
                file.set_len(if round == 1 { 20 } else { 0 }).unwrap();
            }
        }
        writers.progress(&all);
        gone(&turn_file);
        std::fs::create_dir_all(&turn_file).unwrap();
        writers.progress(&all);
        gone(&turn_file);
        std::fs::write(&turn_file, [0xa5; 8192]).unwrap();
        writers.progress(&all);
        gone(&turn_file);
    }
    for _ in 0..20 {
        if let Ok(bytes) = std::fs::read(&turn_file)
            && bytes.len() >= 28
        {
            let mut other = bytes.clone();
            other[16..28].fill(0x7f);
            std::fs::write(&turn_file, other).unwrap();
        }
        writers.progress(&all);
    }
    writers.end();
}

#[test]
fn a_live_query_hears_of_a_commit_of_another_process() {
    let mut writers = Writers::start(1);
    // It finds commits of others only if it is told of them.
    let db = Options::new(writers.file.path()).live_poll(Duration::from_secs(3600)).open().wait().unwrap();
    let mut live = db.live("SELECT count(*) FROM turns", ());
    run(async {
        let mut last = -1;
        for _ in 0..100 {
            let rows = live.next().await.unwrap().unwrap();
            let count: i64 = rows.iter().next().unwrap().get(0).unwrap();
            assert!(count > last);
            last = count;
        }
    });
    assert!(db.stats().turns.commits_heard >= 99);
    drop(live);
    writers.progress(&[0]);
    db.close().wait().unwrap();
    let turn_file = writers.turn_file();
    writers.end();
    assert!(!turn_file.exists());
}
