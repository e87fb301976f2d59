//! Resources that must not grow: memory, threads and descriptors. Each test runs alone in a separate process.
#![cfg(target_os = "linux")]

use std::time::Duration;

use flatwater::{Database, Error};
use futures_util::future::join_all;

use crate::support::{TestFile, is_alone_in_process, run, wait_until};

/// Returns the number of Flatwater's running threads. The timer's thread, which all databases share, ends after it was
/// idle for a while.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    let names = tasks.filter_map(|comm| std::fs::read_to_string(comm).ok());
    names.filter(|name| name.starts_with("fw-") && name.trim() != "fw-timer").count()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn two_hundred_databases_leave_no_thread_and_no_descriptor() {
    if !is_alone_in_process("lifetimes::leaks::two_hundred_databases_leave_no_thread_and_no_descriptor", None) {
        return;
    }
    let file = TestFile::new();
    let use_it = |how: usize| {
        let db = file.options().open().wait().unwrap();
        let patient = db.with_timeout(Duration::from_secs(3600));
        patient.execute("CREATE TABLE IF NOT EXISTS t (a)", ()).wait().unwrap();
        smol::block_on(async {
            let tx = db.begin().await.unwrap();
            tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            if how.is_multiple_of(3) {
                drop(tx);
            } else {
                tx.commit().await.unwrap();
            }
            join_all((0..5).map(|_| db.query("SELECT count(*) FROM t", ()))).await;
            db.read_with(|_| Ok::<_, Error>(())).await.unwrap();
            if how.is_multiple_of(2) {
                db.close().await.unwrap();
            }
        });
    };
    use_it(0);
    wait_until(|| threads() == 0);
    let before = descriptors();
    (1..=200).for_each(use_it);
    wait_until(|| threads() == 0 && descriptors() <= before);
}

/// Returns the resident memory of this process in KiB.
fn resident_kib() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4
}

/// Runs `count` texts that were never used before: reads, writes, and some too long for the cache.
async fn distinct_texts(db: &Database, from: usize, count: usize) {
    let padding = "/* padding */".repeat(1500);
    for n in (from..from + count).step_by(50) {
        let reads = join_all((n..n + 50).map(|n| db.query(format!("SELECT {n}, a FROM t WHERE a = {n}"), ())));
        let writes = join_all((n..n + 50).map(|n| db.execute(format!("UPDATE t SET a = {n} WHERE a = -{n}"), ())));
        let long = format!("SELECT {n} {padding}");
        let (reads, writes, long) = futures_util::join!(reads, writes, db.query(&long, ()));
        assert!(reads.iter().all(Result::is_ok) && writes.iter().all(Result::is_ok) && long.is_ok());
    }
}

#[test]
fn distinct_texts_leave_memory_flat() {
    if !is_alone_in_process("lifetimes::leaks::distinct_texts_leave_memory_flat", None) {
        return;
    }
    let file = TestFile::new();
    run(async {
        let db = file.options().readers(2).open().await.unwrap();
        db.execute("CREATE TABLE t (a)", ()).await.unwrap();
        distinct_texts(&db, 0, 5_000).await;
        let before = resident_kib();
        distinct_texts(&db, 5_000, 25_000).await;
        // 50,000 texts; a kilobyte lost per text would be 50 MiB.
        let grown = resident_kib().saturating_sub(before);
        assert!(grown < 8 * 1024, "{grown} KiB more than after the first 5,000");
    });
}
