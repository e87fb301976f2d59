//! `rekey`: the database goes on with another key, and nobody may have the file open meanwhile.

use std::time::Duration;

use flatwater::options::{Journal, Key};
use flatwater::{ErrorKind, Options};

use super::{EncryptedFile, PASSPHRASE, PLAIN, with_sqlcipher};
use crate::support::{TestFile, count, empty_table, integer, run};

const NEW: &str = "another passphrase";

#[test]
fn the_database_goes_on_with_the_new_key_and_so_does_whoever_opens_it() {
    run(async {
        let file = EncryptedFile::unchecked();
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (zeroblob(200000)), (2)", ()).await.unwrap();
        let copy = db.clone();
        let mut live = db.live("SELECT count(*) FROM t", ());
        assert_eq!(live.next().await.unwrap().unwrap().iter().next().unwrap().get::<i64>(0).unwrap(), 2);
        db.query("SELECT a FROM t WHERE rowid = 2", ()).await.unwrap();
        for round in 0..3 {
            let key = if round % 2 == 0 { Key::text(NEW) } else { Key::raw(&[9; 32]) };
            db.rekey(key).await.unwrap();
            assert_eq!((count(&db).await, db.stats().journal.as_str()), (2, "wal"));
        }
        copy.execute("INSERT INTO t VALUES (3)", ()).await.unwrap();
        assert_eq!(live.next().await.unwrap().unwrap().iter().next().unwrap().get::<i64>(0).unwrap(), 3);
        let other = || Options::new(file.path()).key(Key::text(NEW));
        assert_eq!(count(&other().open().await.unwrap()).await, 3);
        assert_eq!(file.options().open().await.unwrap_err().kind(), ErrorKind::Misuse);
        let backup = file.beside("copy.db");
        db.backup(&backup).await.unwrap();
        assert_eq!(integer(&with_sqlcipher(&backup, NEW), "SELECT count(*) FROM t"), 3);
        drop(live);
        db.close().await.unwrap();
        copy.close().await.unwrap();
        assert_eq!(file.options().open().await.unwrap_err().kind(), ErrorKind::Key);
        let db = other().open().await.unwrap();
        assert_eq!(count(&db).await, 3);
        db.close().await.unwrap();
        assert_eq!(integer(&with_sqlcipher(&file.path(), NEW), "SELECT count(*) FROM t"), 3);
        assert!(!file.has(PLAIN));
    });
}

#[test]
fn a_file_that_keeps_another_journal_mode_keeps_it() {
    run(async {
        let file = EncryptedFile::unchecked();
        let db = empty_table(file.options().journal(Journal::Keep)).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.rekey(Key::text(NEW)).await.unwrap();
        db.execute("INSERT INTO t VALUES (2)", ()).await.unwrap();
        db.close().await.unwrap();
        let other = with_sqlcipher(&file.path(), NEW);
        assert_eq!(integer(&other, "SELECT count(*) FROM t"), 2);
        assert_eq!(other.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).unwrap(), "delete");
    });
}

#[test]
fn a_reader_or_another_program_that_has_the_file_open_is_waited_for_and_then_busy() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options().busy_timeout(Duration::from_millis(50))).await;
        let snapshot = db.snapshot().await.unwrap();
        assert_eq!(snapshot.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        let error = db.rekey(Key::text(NEW)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        assert!(error.message().contains("another connection has the file open"), "{error}");
        drop(snapshot);
        let other = with_sqlcipher(&file.path(), PASSPHRASE);
        assert_eq!(integer(&other, "SELECT count(*) FROM t"), 0);
        assert_eq!(db.rekey(Key::text(NEW)).await.unwrap_err().kind(), ErrorKind::Busy);
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(integer(&other, "SELECT count(*) FROM t"), 1, "both have the old key");
        drop(other);
        for key in [NEW, PASSPHRASE] {
            // Its own connections may need longer than that to be closed.
            while let Err(error) = db.rekey(Key::text(key)).await {
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
            }
        }
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_read_in_progress_ends_first() {
    run(async {
        let file = EncryptedFile::unchecked();
        let db = empty_table(file.options()).await;
        let (begins, begun) = std::sync::mpsc::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let read = db.read_with(move |connection| {
            begins.send(()).unwrap();
            let _ = released.recv();
            Ok::<_, flatwater::Error>(connection.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0))?)
        });
        let read = tokio::spawn(read);
        begun.recv().unwrap();
        let changed = tokio::spawn(db.rekey(Key::text(NEW)));
        let write = tokio::spawn(db.execute("INSERT INTO t VALUES (1)", ()));
        drop(release);
        assert_eq!(read.await.unwrap().unwrap(), 0);
        changed.await.unwrap().unwrap();
        write.await.unwrap().unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn what_has_no_key_or_shares_it_is_refused() {
    run(async {
        let (plain, file, other) = (TestFile::new(), EncryptedFile::new(), EncryptedFile::new());
        let db = empty_table(plain.options()).await;
        let error = db.rekey(Key::text(NEW)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.hint().unwrap().contains("`db.export`"), "{error}");
        empty_table(other.options()).await.close().await.unwrap();
        let db = empty_table(file.options().tuning(|t| t.attach("o", other.path()))).await;
        let error = db.rekey(Key::text(NEW)).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("attached"), "{error}");
        assert_eq!(db.rekey(Key::text("")).await.unwrap_err().kind(), ErrorKind::Misuse);
        db.close().await.unwrap();
        let read = file.options().read_only(true).open().await.unwrap();
        assert_eq!(read.rekey(Key::text(NEW)).await.unwrap_err().kind(), ErrorKind::Misuse);
    });
}

#[test]
fn after_a_call_that_was_dropped_the_database_tells_which_key_it_has() {
    run(async {
        let file = EncryptedFile::unchecked();
        let db = empty_table(file.options().busy_timeout(Duration::from_secs(60))).await;
        for round in 0..8 {
            let (before, after) = if round % 2 == 0 { (PASSPHRASE, NEW) } else { (NEW, PASSPHRASE) };
            let snapshot = db.snapshot().await.unwrap();
            let mut change = Box::pin(std::future::IntoFuture::into_future(db.rekey(Key::text(after))));
            assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(change.as_mut().poll(cx).is_pending())).await);
            // Dropped while it waits, or just when it may begin.
            if round < 4 {
                drop(change);
                drop(snapshot);
            } else {
                drop(snapshot);
                drop(change);
            }
            let is_new = db.has_key(Key::text(after)).await.unwrap();
            assert_eq!(db.has_key(Key::text(before)).await.unwrap(), !is_new);
            db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
            let holds = if is_new { after } else { before };
            assert_eq!(integer(&with_sqlcipher(&file.path(), holds), "SELECT count(*) FROM t"), round + 1);
            if !is_new {
                db.rekey(Key::text(after)).await.unwrap();
            }
        }
        db.close().await.unwrap();
        let plain = Options::new(file.beside("plain.db")).open().await.unwrap();
        assert!(!plain.has_key(Key::text(NEW)).await.unwrap());
    });
}
