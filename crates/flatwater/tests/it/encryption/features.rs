//! What works on plain files works on encrypted ones: backups, live queries, leases, inline runs, parking, migrations.

use flatwater::process::set_max_open;

use super::{EncryptedFile, PASSPHRASE, PLAIN, with_sqlcipher};
use crate::support::{count, empty_table, integer, is_alone_in_process, run, until};

#[test]
fn a_backup_has_the_key_of_its_database() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        db.execute("INSERT INTO t VALUES (zeroblob(100000)), (2)", ()).await.unwrap();
        let copy = file.beside("copy.db");
        db.backup(&copy).await.unwrap();
        db.execute("DELETE FROM t", ()).await.unwrap();
        assert!(!std::fs::read(&copy).unwrap().starts_with(PLAIN));
        assert_eq!(integer(&with_sqlcipher(&copy, PASSPHRASE), "SELECT count(*) FROM t"), 2);
        let copied =
            flatwater::Options::new(&copy).key(flatwater::options::Key::text(PASSPHRASE)).open().await.unwrap();
        assert_eq!(count(&copied).await, 2);
    });
}

#[test]
fn live_queries_run_again_for_our_commits_and_for_those_of_others() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        let mut live = db.live("SELECT count(*) FROM t", ());
        for expected in 0..3_i64 {
            let rows = live.next().await.unwrap().unwrap();
            assert_eq!(rows.iter().next().unwrap().get::<i64>(0).unwrap(), expected);
            match expected {
                0 => db.execute("INSERT INTO t VALUES (1)", ()).await.map(drop).unwrap(),
                _ => with_sqlcipher(&file.path(), PASSPHRASE).execute_batch("INSERT INTO t VALUES (2)").unwrap(),
            }
        }
    });
}

#[test]
fn short_calls_run_on_their_callers_thread_and_continue_leases() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options().readers(1)).await;
        until_inline(&db).await;
        let stats = db.stats();
        assert!(stats.inline.reads > 0 && stats.inline.writes > 0, "{:?}", stats.inline);
        assert!(stats.leases.taken > 0, "{:?}", stats.leases);
    });
}

/// Calls until both ways were seen: the first calls of a text run on workers.
async fn until_inline(db: &flatwater::Database) {
    loop {
        db.execute("INSERT INTO t VALUES (?)", (1,)).await.unwrap();
        for _ in 0..3 {
            db.query("SELECT a FROM t WHERE rowid = ?", (1,)).await.unwrap();
        }
        let stats = db.stats();
        if stats.inline.reads > 0 && stats.inline.writes > 0 && stats.leases.taken > 0 {
            return;
        }
    }
}

#[test]
fn migrations_are_applied_to_an_encrypted_file() {
    run(async {
        let file = EncryptedFile::new();
        let options = file.options().migrations([("001_t", "CREATE TABLE t (a); INSERT INTO t VALUES (1)")]);
        for _ in 0..2 {
            let db = options.clone().open().await.unwrap();
            assert_eq!(count(&db).await, 1);
            db.close().await.unwrap();
        }
    });
}

#[test]
fn a_transaction_a_snapshot_and_a_closure_have_the_key() {
    run(async {
        let file = EncryptedFile::new();
        let db = empty_table(file.options()).await;
        let snapshot = db.snapshot().await.unwrap();
        let tx = db.begin().await.unwrap();
        tx.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(snapshot.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), 0);
        drop(snapshot);
        db.with_connection(|connection| Ok::<_, flatwater::Error>(connection.execute_batch("VACUUM")?)).await.unwrap();
        assert_eq!(count(&db).await, 1);
        db.checkpoint(flatwater::calls::CheckpointMode::Truncate).await.unwrap();
        assert_eq!(count(&db).await, 1);
    });
}

#[test]
fn a_parked_database_comes_back_with_its_key() {
    if !is_alone_in_process("encryption::features::a_parked_database_comes_back_with_its_key", None) {
        return;
    }
    run(async {
        set_max_open(1);
        let files: Vec<_> = (0..4).map(|_| EncryptedFile::new()).collect();
        let mut dbs = Vec::new();
        for file in &files {
            dbs.push(empty_table(file.options()).await);
        }
        let parked = || dbs.iter().map(|db| db.stats().parked).sum::<u64>();
        while parked() < 8 {
            for db in &dbs {
                db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
                assert!(count(db).await > 0);
            }
            until(|| true).await;
        }
    });
}
