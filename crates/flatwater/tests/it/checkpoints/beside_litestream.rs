//! Beside Litestream: the WAL is left to it while it runs, and never restarted in a way that hides what it has not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flatwater::calls::CheckpointMode;
use flatwater::options::{Checkpoint, CheckpointLimits};
use flatwater::{Database, Options};
use rand::{RngExt, SeedableRng};

use crate::support::{TestFile, count, empty_table, run, until};

const INSERT: &str = "INSERT INTO t VALUES (randomblob(8000))";
/// What Litestream leaves in each file that it has worked on.
const TABLES: &str = "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
    CREATE TABLE _litestream_lock (id INTEGER)";
const LIMIT: u64 = 1 << 20;

/// A file that Litestream has worked on.
fn beside_litestream() -> TestFile {
    let file = TestFile::new();
    file.plain().execute_batch(TABLES).unwrap();
    file
}

fn small(file: &TestFile) -> Options {
    let limits = CheckpointLimits::default().limit_bytes(LIMIT).hard_limit_bytes(4 * LIMIT);
    file.options().checkpoint(Checkpoint::Managed(limits))
}

async fn write(db: &Database, rows: usize) {
    for _ in 0..rows {
        db.execute(INSERT, ()).await.unwrap();
    }
}

/// A reader as Litestream is one: it has the WAL as it is now open.
fn reader(file: &TestFile) -> rusqlite::Connection {
    let reader = file.plain();
    reader.execute_batch("BEGIN").unwrap();
    reader.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
    reader
}

fn wal(file: &TestFile) -> Vec<u8> {
    std::fs::read(file.beside("-wal")).unwrap_or_default()
}

/// The frames in the file from before the last restart of the WAL (<https://sqlite.org/fileformat2.html#the_write_ahead_log>). Who reads
/// them takes the WAL for one that goes on.
fn old_frames(file: &TestFile) -> usize {
    // It may be restarted while it is read.
    let mut read = wal(file);
    while read.get(..32) != wal(file).get(..32) {
        read = wal(file);
    }
    let Some((header, frames)) = read.split_at_checked(32) else { return 0 };
    frames.chunks(24 + 4096).filter(|frame| frame.len() > 24 && frame[8..16] != header[16..24]).count()
}

/// Asserts that no restart has left old frames. A commit that restarts the WAL cuts it before it ends, so they are there for a moment; a
/// write of `db` comes after it.
async fn assert_no_old_frames_are_left(file: &TestFile, db: &Database) {
    let restart = wal(file).get(..32).map(<[u8]>::to_vec);
    if old_frames(file) > 0 {
        write(db, 1).await;
        assert!(old_frames(file) == 0 || wal(file).get(..32) != restart.as_deref());
    }
}

#[test]
fn without_litestream_a_restart_leaves_old_frames_and_beside_it_none() {
    for beside in [false, true] {
        let file = TestFile::new();
        run(async {
            let db = empty_table(small(&file)).await;
            if beside {
                db.execute_script(TABLES).await.unwrap();
                db.close().await.unwrap();
            }
            let db = if beside { small(&file).open().await.unwrap() } else { db };
            write(&db, 20).await;
            db.checkpoint(CheckpointMode::Restart).await.unwrap();
            write(&db, 1).await;
            assert_eq!(old_frames(&file) > 0, !beside);
            db.close().await.unwrap();
        });
    }
}

#[test]
fn while_litestream_reads_the_wal_nothing_is_restarted_and_no_write_waits_and_then_it_is_cut() {
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        let litestream = reader(&file);
        // Far beyond the hard limit.
        write(&db, 1200).await;
        until(|| db.stats().wal.starved > 0).await;
        write(&db, 100).await;
        let stats = db.stats().wal;
        assert_eq!((stats.resets, stats.waits_for_room), (0, 0));
        assert!(wal(&file).len() > 10_000_000);
        drop(litestream);
        until(|| db.stats().wal.resets > 0).await;
        assert!((wal(&file).len() as u64) < LIMIT, "{}", wal(&file).len());
        assert_eq!(old_frames(&file), 0);
        assert_eq!(count(&db).await, 1300);
    });
}

#[test]
fn what_a_reader_kept_from_being_cut_is_not_left_copied_to_its_end() {
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        let first = reader(&file);
        write(&db, 100).await;
        let at_the_end = reader(&file);
        drop(first);
        // Everything can be copied, and the reader keeps the WAL from being truncated.
        until(|| db.stats().wal.copied_frames >= 300).await;
        until(|| db.stats().wal.backlog == 1).await;
        let before = wal(&file).len();
        drop(at_the_end);
        write(&db, 1).await;
        assert_eq!(old_frames(&file), 0);
        until(|| db.stats().wal.resets > 0).await;
        assert!(wal(&file).len() < before);
        assert_eq!(old_frames(&file), 0);
        assert_eq!(count(&db).await, 101);
    });
}

#[test]
fn tables_that_appear_while_the_database_is_open_are_seen() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(small(&file)).await;
        write(&db, 1).await;
        let litestream = file.plain();
        litestream.execute_batch(TABLES).unwrap();
        while db.stats().wal.resets == 0 || old_frames(&file) > 0 {
            write(&db, 1).await;
        }
        let taken = db.stats().leases.taken;
        for _ in 0..100 {
            db.query("SELECT count(*) FROM t", ()).await.unwrap();
        }
        assert_eq!(db.stats().leases.taken, taken, "Litestream would wait for them");
        drop(litestream);
        write(&db, 1).await;
        db.close().await.unwrap();
        assert!(!wal(&file).is_empty(), "it is left to Litestream");
    });
}

/// Writes come between the steps of a checkpoint, and readers block some of these.
#[test]
fn no_write_restarts_what_was_copied_while_the_wal_is_to_be_cut() {
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        let ends = Arc::new(AtomicBool::new(false));
        let readers = std::thread::spawn({
            let (plain, ends) = (file.plain(), ends.clone());
            move || {
                let mut random = rand::rng();
                while !ends.load(Ordering::Relaxed) {
                    plain.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
                    std::thread::sleep(Duration::from_micros(random.random_range(0..8_000)));
                    plain.execute_batch("COMMIT").unwrap();
                    std::thread::sleep(Duration::from_micros(random.random_range(0..8_000)));
                }
            }
        });
        let writer = tokio::spawn({
            let (db, ends) = (db.clone(), ends.clone());
            async move {
                while !ends.load(Ordering::Relaxed) {
                    write(&db, 1).await;
                    // Pauses in which a checkpoint reaches the end of the WAL.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        });
        while db.stats().wal.resets < 4 {
            assert_no_old_frames_are_left(&file, &db).await;
            tokio::task::yield_now().await;
        }
        ends.store(true, Ordering::Relaxed);
        writer.await.unwrap();
        readers.join().unwrap();
    });
}

#[test]
fn a_checkpoint_on_demand_does_not_wait_for_the_pin_of_the_checkpointer() {
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        for round in 0..150 {
            // As many as make the checkpointer begin, more or less.
            write(&db, 20 + round % 60).await;
            db.checkpoint(CheckpointMode::Truncate).await.unwrap();
        }
        assert_eq!(old_frames(&file), 0);
    });
}

/// Another process has the write lock when the pin is to end, so that there can be no commit before it.
#[test]
fn while_another_program_writes_the_pin_stays() {
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        let foreign = file.plain();
        foreign.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        let writes = std::thread::spawn(move || {
            foreign.busy_timeout(Duration::from_secs(60)).unwrap();
            for _ in 0..40 {
                foreign.execute_batch("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)").unwrap();
                // Longer than a step of the checkpointer waits.
                std::thread::sleep(Duration::from_millis(30));
                foreign.execute_batch("COMMIT").unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        while !writes.is_finished() {
            assert_no_old_frames_are_left(&file, &db).await;
            write(&db, 5).await;
        }
        writes.join().unwrap();
        assert!(db.stats().wal.copied_frames > 0);
    });
}

/// Whatever readers, writes and checkpoints on demand do.
#[test]
fn no_order_of_readers_writers_and_checkpoints_leaves_old_frames() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = rand::rngs::StdRng::seed_from_u64(seed);
    let file = beside_litestream();
    run(async {
        let db = empty_table(small(&file)).await;
        let mut readers = Vec::new();
        for _ in 0..600 {
            match random.random_range(0..12) {
                0..6 => write(&db, random.random_range(1..30)).await,
                6..8 => readers.push(reader(&file)),
                8..10 if !readers.is_empty() => drop(readers.swap_remove(random.random_range(0..readers.len()))),
                10 if readers.len() > 3 => readers.clear(),
                _ => {
                    let modes = [
                        CheckpointMode::Passive,
                        CheckpointMode::Full,
                        CheckpointMode::Restart,
                        CheckpointMode::Truncate,
                    ];
                    // Most are blocked.
                    let _ =
                        db.with_timeout(Duration::from_millis(5)).checkpoint(modes[random.random_range(0..4)]).await;
                }
            }
            assert_eq!(old_frames(&file), 0);
        }
        readers.clear();
        while db.stats().wal.resets == 0 {
            write(&db, 1).await;
        }
        assert_eq!(old_frames(&file), 0);
    });
}
