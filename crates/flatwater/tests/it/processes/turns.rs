//! Several processes that write to one file: each gets its turns, whatever happens to the others and to the file `<db>-turn`.
//!
//! The children are in `writers`; what a single fault does to the line is in `turn_faults`. No test relies on how long a
//! turn takes.

use std::cell::Cell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flatwater::Options;
use flatwater::bindings::Internals as _;

use super::writers::{SOME, Writers, is_file};
use crate::support::{integer, run, wait_until};

#[test]
fn processes_that_write_take_turns_and_the_last_one_removes_the_file() {
    let mut writers = Writers::start(4);
    let turn_file = writers.turn_file();
    wait_until(|| is_file(&turn_file));
    let all = writers.all();
    writers.progress(&all);
    writers.end();
}

/// Starting it takes longer than waking it.
#[test]
fn the_thread_that_ends_the_turns_of_a_process_stays_between_them() {
    let mut writers = Writers::start(4);
    let all = writers.all();
    writers.progress(&all);
    let tasks = format!("/proc/{}/task", writers.children[0].0.id());
    let threads = || -> HashSet<PathBuf> {
        let tasks = std::fs::read_dir(&tasks).unwrap().map(|task| task.unwrap().path());
        tasks
            .filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "fw-writer\n"))
            .collect()
    };
    wait_until(|| !threads().is_empty());
    let before = threads();
    writers.progress(&all);
    assert_eq!(threads(), before);
    writers.end();
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
    writers.stops(0);
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
    // Whoever finds it cut short while it is written gives it up for a while, and leaves it if he is closed before.
    gone(&turn_file);
    writers.progress(&all);
    writers.end();
}

/// Nothing else reads: what reads inline is the live query, on the thread that hears of the commit.
#[test]
fn a_live_query_hears_of_a_commit_of_another_process_and_runs_on_the_thread_that_does() {
    let mut writers = Writers::start(1);
    // It finds commits of others only if it is told of them.
    let db =
        Options::new(writers.file.path()).tuning(|t| t.live_poll(Duration::from_secs(3600))).open().wait().unwrap();
    let mut live = db.live("SELECT max(rowid) FROM turns", ());
    run(async {
        let (mut last, mut heard) = (-1, 0);
        while heard < 100 || db.stats().inline.reads < 10 {
            let rows = live.next().await.unwrap().unwrap();
            let newest = rows.iter().next().unwrap().get::<Option<i64>>(0).unwrap().unwrap_or(0);
            assert!(newest > last);
            (last, heard) = (newest, heard + 1);
        }
    });
    assert!(db.stats().turns.commits_heard >= 99);
    drop(live);
    writers.progress(&[0]);
    db.close().wait().unwrap();
    writers.end();
}
