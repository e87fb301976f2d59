//! What the caller of a backup is told while it runs. A callback that panics is tested by `held_backup.rs` of `flatwater-sqlite`.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use flatwater::Database;
use flatwater::calls::{BackupCall, BackupProgress};

use crate::place::{Place, in_both_places};
use crate::support::{integer, wait_until};

in_both_places!(
    a_backup_tells_its_caller_how_far_it_is,
    a_backup_does_not_wait_for_its_callback,
    a_callback_may_call_the_database,
);

const ROWS: i64 = 3000;

async fn large(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(
        "CREATE TABLE t (a); WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 3000)
         INSERT INTO t SELECT randomblob(2000) FROM n",
    )
    .await
    .unwrap();
    db
}

fn is_whole(copy: &Path) -> bool {
    integer(&rusqlite::Connection::open(copy).unwrap(), "SELECT count(*) FROM t") == ROWS
}

async fn a_backup_tells_its_caller_how_far_it_is(place: &Place) {
    let (db, directory) = (large(place).await, tempfile::tempdir().unwrap());
    let pages: u32 = db.query_value("PRAGMA page_count", ()).await.unwrap();
    let reporting = |name: &str| {
        let told = Arc::<Mutex<Vec<BackupProgress>>>::default();
        let (path, tell) = (directory.path().join(name), told.clone());
        let own = thread::current().id();
        let call: BackupCall = db.backup(&path).progress(move |progress| {
            assert_eq!(thread::current().id(), own, "on the thread of the caller");
            tell.lock().unwrap().push(progress);
        });
        (call, path, told)
    };
    let check = |path: &Path, told: Arc<Mutex<Vec<BackupProgress>>>| {
        let told = told.lock().unwrap();
        assert!(is_whole(path));
        assert!(told.iter().all(|progress| progress.total_pages == pages), "{told:?} of {pages}");
        assert!(told.is_sorted_by(|a, b| a.remaining_pages > b.remaining_pages), "{told:?}");
        assert_eq!(told.last().unwrap().remaining_pages, 0);
    };
    let (call, path, told) = reporting("awaited.db");
    call.await.unwrap();
    check(&path, told);
    let (call, path, told) = reporting("waited.db");
    call.wait().unwrap();
    check(&path, told);
}

async fn a_backup_does_not_wait_for_its_callback(place: &Place) {
    let (db, directory) = (large(place).await, tempfile::tempdir().unwrap());
    let path = directory.path().join("copy.db");
    let copy = path.clone();
    // A backup that waits for this never has a file of that name.
    db.backup(&path).progress(move |_| wait_until(|| copy.exists())).await.unwrap();
    assert!(is_whole(&path));
}

async fn a_callback_may_call_the_database(place: &Place) {
    let (db, directory) = (large(place).await, tempfile::tempdir().unwrap());
    let path = directory.path().join("copy.db");
    let (calls, reads) = (Arc::<Mutex<Vec<_>>>::default(), db.clone());
    let made = calls.clone();
    let progress = move |_| made.lock().unwrap().push(reads.query_value::<i64>("SELECT count(*) FROM t", ()));
    db.backup(&path).progress(progress).await.unwrap();
    let made = std::mem::take(&mut *calls.lock().unwrap());
    assert!(!made.is_empty());
    for call in made {
        assert_eq!(call.await.unwrap(), ROWS);
    }
}
