//! `process::close_all` closes all files of the process at the same time, once each, and waits for all of them.
//!
//! It would close the files of the other tests of this program too, so each of these runs alone in a process.

use std::sync::mpsc::channel;
use std::time::Duration;

use flatwater::process::close_all;
use flatwater::{Database, ErrorKind, Options};

use crate::support::{TestFile, count, empty_table, is_alone_in_process, run};

const LONG: Duration = Duration::from_secs(600);

/// No close is hurried, however slow the machine is.
fn patient(file: &TestFile) -> Options {
    file.options().tuning(|t| t.close_wait(LONG))
}

/// The last close of a file removes its WAL.
fn has_wal(file: &TestFile) -> bool {
    file.beside("-wal").exists()
}

#[test]
fn every_file_is_closed_once_and_its_writes_are_kept() {
    if !is_alone_in_process("lifetimes::process::every_file_is_closed_once_and_its_writes_are_kept", None) {
        return;
    }
    let files: Vec<_> = (0..20).map(|_| TestFile::new()).collect();
    run(async {
        let mut handles = Vec::new();
        for file in &files {
            handles.push((empty_table(patient(file)).await, patient(file).open().await.unwrap()));
        }
        let in_memory = Database::open(":memory:").await.unwrap();
        let inserts: Vec<_> = handles.iter().map(|(db, _)| db.execute("INSERT INTO t VALUES (1)", ())).collect();
        let inserts = futures_util::future::join_all(inserts);
        let (inserted, closed, closed_by_handle, again) =
            futures_util::join!(inserts, close_all(LONG), handles[0].0.close(), close_all(LONG));
        assert!(inserted.iter().all(Result::is_ok));
        [closed, closed_by_handle, again].into_iter().for_each(Result::unwrap);
        in_memory.query("SELECT 1", ()).await.unwrap();
        for (file, (one, other)) in files.iter().zip(handles) {
            assert!(!has_wal(file));
            assert_eq!(one.query("SELECT 1", ()).await.unwrap_err().kind(), ErrorKind::Closed);
            // Handles from before that have no part in a database that was opened after it.
            let (first, second) = (patient(file).open().await.unwrap(), patient(file).open().await.unwrap());
            one.close().await.unwrap();
            drop(other);
            first.close().await.unwrap();
            assert_eq!(count(&second).await, 1);
        }
    });
    // The handles were dropped, and what that began is waited for.
    close_all(LONG).wait().unwrap();
    assert!(!files.iter().any(has_wal));
    close_all(LONG).wait().unwrap();
}

#[test]
fn a_transaction_is_rolled_back_after_its_time() {
    if !is_alone_in_process("lifetimes::process::a_transaction_is_rolled_back_after_its_time", None) {
        return;
    }
    let file = TestFile::new();
    run(async {
        let db = empty_table(patient(&file)).await;
        let transaction = db.begin().await.unwrap();
        transaction.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        close_all(Duration::ZERO).await.unwrap();
        assert!(transaction.commit().await.is_err());
        assert_eq!(count(&file.open().await).await, 0);
    });
}

#[test]
fn what_does_not_end_is_named_and_the_other_files_are_closed() {
    if !is_alone_in_process("lifetimes::process::what_does_not_end_is_named_and_the_other_files_are_closed", None) {
        return;
    }
    let (file, stuck_file) = (TestFile::new(), TestFile::new());
    run(async {
        let (_db, stuck) = (empty_table(patient(&file)).await, empty_table(patient(&stuck_file)).await);
        let ((begins, begun), (release, released)) = (channel(), channel::<()>());
        let closure = tokio::spawn(stuck.write_with(move |_| {
            begins.send(()).unwrap();
            let _ = released.recv();
            Ok::<_, flatwater::Error>(())
        }));
        tokio::task::spawn_blocking(move || begun.recv().unwrap()).await.unwrap();
        for _ in 0..2 {
            // Time enough for the file that nobody uses.
            let error = close_all(Duration::from_secs(2)).await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Busy, Some("close_all")), "{error}");
            assert!(error.message().contains("write_with"), "{error}");
        }
        assert_eq!(count(&file.open().await).await, 0);
        release.send(()).unwrap();
        assert_eq!(closure.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn of_two_thousand_files_none_keeps_a_wal() {
    if !is_alone_in_process("lifetimes::process::of_two_thousand_files_none_keeps_a_wal", None) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..2000).map(|n| directory.path().join(format!("{n}.db"))).collect();
    let open = |path| Options::new(path).tuning(|t| t.close_wait(LONG)).open().wait().unwrap();
    let open: Vec<_> = paths.iter().map(open).collect();
    for db in &open {
        db.execute("CREATE TABLE t (a)", ()).wait().unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).wait().unwrap();
    }
    close_all(LONG).wait().unwrap();
    let left: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(left.len(), paths.len(), "only the files themselves");
    for path in [&paths[0], &paths[1999]] {
        assert_eq!(run(async { count(&Database::open(path).await.unwrap()).await }), 1);
    }
}
