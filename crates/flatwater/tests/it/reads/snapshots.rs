//! Snapshots: several reads of one point in time.

use std::time::{Duration, Instant};

use flatwater::{Database, ErrorKind, Options, Session};
use futures_util::TryStreamExt;
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, run, until};

in_both_places!(
    a_snapshot_only_reads,
    its_reads_run_in_any_number_at_once,
    a_dropped_snapshot_lets_others_go_on,
    one_function_serves_a_database_a_transaction_and_a_snapshot,
);

async fn accounts(options: Options) -> Database {
    let db = options.readers(2).tuning(|t| t.extra_readers(2)).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, cents INTEGER);
         INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 30000) SELECT x, 100 FROM n",
    )
    .await
    .unwrap();
    db
}

const SUM: &str = "SELECT sum(cents) FROM t";

#[test]
fn all_reads_of_a_snapshot_see_the_point_in_time_of_its_call() {
    let file = TestFile::new();
    run(async {
        let db = accounts(file.options()).await;
        let snapshot = db.snapshot().await.unwrap();
        assert_eq!(db.stats().readers_held, 1);
        db.execute("UPDATE t SET cents = 0", ()).await.unwrap();
        let mut rows = snapshot.stream_as::<(i64, i64)>("SELECT id, cents FROM t ORDER BY id", ());
        assert_eq!(rows.next().await.unwrap().unwrap(), (1, 100));
        db.execute_script("CREATE TABLE u (a); ALTER TABLE t ADD COLUMN more; DELETE FROM t").await.unwrap();
        assert_eq!(snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(3_000_000));
        assert_eq!(snapshot.query("SELECT * FROM t LIMIT 1", ()).await.unwrap().columns().len(), 2);
        let no_table = snapshot.query("SELECT * FROM u", ()).await.unwrap_err();
        assert!(no_table.message().contains("no such table"), "{no_table}");
        // The same text, while the first stream of it is in the middle of its rows.
        let again: Vec<_> =
            snapshot.stream_as::<(i64, i64)>("SELECT id, cents FROM t ORDER BY id", ()).try_collect().await.unwrap();
        assert_eq!((again.len(), rows.try_collect::<Vec<_>>().await.unwrap().len()), (30_000, 29_999));
        // What the snapshot saw is not taken for the schema of others.
        assert_eq!(db.query("SELECT * FROM t", ()).await.unwrap().columns().len(), 3);
        assert_eq!(snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(3_000_000));
        drop(snapshot);
        until(|| db.stats().readers_held == 0).await;
        assert_eq!(db.query("SELECT * FROM t LIMIT 1", ()).await.unwrap().columns().len(), 3);
        assert_eq!(db.query_optional_value::<Option<i64>>(SUM, ()).await.unwrap(), Some(None));
    });
}

async fn a_snapshot_only_reads(place: &Place) {
    let db = accounts(place.options()).await;
    let snapshot = db.snapshot().await.unwrap();
    for _ in 0..5 {
        let error = snapshot.query("DELETE FROM t RETURNING id", ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("only reads"), "{error}");
        let streamed: Result<Vec<_>, _> = snapshot.stream("DELETE FROM t RETURNING id", ()).try_collect().await;
        assert_eq!(streamed.unwrap_err().kind(), ErrorKind::Misuse);
    }
    writes_are_refused(&snapshot).await;
    assert_eq!(snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(3_000_000), "it is still open");
    drop(snapshot);
    assert_eq!(db.query("DELETE FROM t RETURNING id", ()).await.unwrap().len(), 30_000);
}

async fn writes_are_refused(snapshot: &Session) {
    let delete = "DELETE FROM t";
    let errors = [
        snapshot.execute(delete, ()).await.unwrap_err(),
        snapshot.execute_many("DELETE FROM t WHERE id = ?", [(1,)]).await.unwrap_err(),
        snapshot.batch([(delete, ())]).await.unwrap_err(),
        snapshot.execute_script(delete).await.unwrap_err(),
    ];
    for error in errors {
        assert!(error.kind() == ErrorKind::Misuse && error.message().contains("only reads"), "{error}");
    }
}

/// What a program writes once for all of them.
async fn total(of: &Session) -> i64 {
    let mut sum = 0;
    let mut rows = of.stream_as::<(i64,)>("SELECT cents FROM t", ());
    while let Some(row) = rows.next().await {
        sum += row.unwrap().0;
    }
    assert_eq!(of.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(sum));
    assert_eq!(of.query_values::<i64>("SELECT cents FROM t", ()).await.unwrap().iter().sum::<i64>(), sum);
    assert_eq!(of.query_one_as::<(i64,)>(SUM, ()).await.unwrap(), (sum,));
    assert_eq!(of.query_json(SUM, ()).await.unwrap(), format!("[{{\"sum(cents)\":{sum}}}]"));
    sum
}

async fn one_function_serves_a_database_a_transaction_and_a_snapshot(place: &Place) {
    let db = accounts(place.options()).await;
    assert_eq!(total(&db).await, 3_000_000);
    assert_eq!(total(&db.snapshot().await.unwrap()).await, 3_000_000);
    let tx = db.begin().await.unwrap();
    tx.execute("UPDATE t SET cents = 1", ()).await.unwrap();
    assert_eq!(total(&tx).await, 30_000);
}

async fn its_reads_run_in_any_number_at_once(place: &Place) {
    let db = accounts(place.options()).await;
    let snapshot = db.snapshot().await.unwrap();
    let reads = (0..100).map(|id| snapshot.query_optional_value::<i64>("SELECT cents + ? FROM t WHERE id = 7", (id,)));
    for (id, cents) in (0..).zip(join_all(reads).await) {
        assert_eq!(cents.unwrap(), Some(100 + id));
    }
}

async fn a_dropped_snapshot_lets_others_go_on(place: &Place) {
    let db = accounts(place.options()).await;
    for _ in 0..20 {
        let snapshot = db.snapshot().await.unwrap();
        let read = snapshot.query_optional_value::<i64>(SUM, ());
        drop(snapshot);
        // It was not begun, so it comes too late.
        assert_eq!(read.await.unwrap_err().kind(), ErrorKind::Misuse);
        db.execute("UPDATE t SET cents = cents WHERE id = 1", ()).await.unwrap();
    }
    until(|| db.stats().readers_held == 0).await;
}

#[test]
fn a_snapshot_past_its_age_ends_and_says_so() {
    let file = TestFile::new();
    run(async {
        let db = accounts(file.options().tuning(|t| t.snapshot_age(Duration::from_millis(50)))).await;
        let idle = db.snapshot().await.unwrap();
        let busy = db.snapshot().await.unwrap();
        let running = busy.query(ENDLESS, ()).await.unwrap_err();
        assert_eq!(running.kind(), ErrorKind::Expired, "{running}");
        until(|| db.stats().readers_held == 0).await;
        for snapshot in [idle, busy] {
            let error = snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Expired);
            assert!(error.hint().unwrap().contains("snapshot_age"), "{error}");
        }
        assert_eq!(db.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(3_000_000));
    });
}

#[test]
fn each_snapshot_may_be_as_old_as_the_limit() {
    let file = TestFile::new();
    run(async {
        const AGE: Duration = Duration::from_millis(60);
        let db = accounts(file.options().tuning(|t| t.snapshot_age(AGE))).await;
        for _ in 0..5 {
            let first = db.snapshot().await.unwrap();
            let began = Instant::now();
            until(|| began.elapsed() >= AGE / 3).await;
            let began = Instant::now();
            let second = db.snapshot().await.unwrap();
            until(|| db.stats().readers_held == 0).await;
            assert!(began.elapsed() >= AGE, "{:?}", began.elapsed());
            drop((first, second));
        }
    });
}

#[test]
fn a_cancelled_read_leaves_the_snapshot_open() {
    let file = TestFile::new();
    run(async {
        let db = accounts(file.options()).await;
        let snapshot = db.snapshot().await.unwrap();
        db.execute("DELETE FROM t", ()).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(20), snapshot.query(ENDLESS, ())).await.is_err());
        assert_eq!(snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap(), Some(3_000_000));
    });
}

#[test]
fn closing_ends_a_snapshot_after_its_wait() {
    let file = TestFile::new();
    run(async {
        let db = accounts(file.options().tuning(|t| t.close_wait(Duration::from_millis(20)))).await;
        let snapshot = db.snapshot().await.unwrap();
        db.close().await.unwrap();
        assert_eq!(snapshot.query_optional_value::<i64>(SUM, ()).await.unwrap_err().kind(), ErrorKind::Closed);
        drop(snapshot);
        assert_eq!(db.snapshot().await.unwrap_err().kind(), ErrorKind::Closed);
    });
}

#[test]
fn a_snapshot_is_of_one_point_in_time_in_attached_files_too() {
    let (file, other) = (TestFile::new(), TestFile::new());
    run(async {
        other.plain().execute_batch("PRAGMA journal_mode = wal; CREATE TABLE b (n); INSERT INTO b VALUES (1)").unwrap();
        let db = file.options().tuning(|t| t.attach("other", other.path())).open().await.unwrap();
        db.execute_script("CREATE TABLE a (n); INSERT INTO a VALUES (1)").await.unwrap();
        let snapshot = db.snapshot().await.unwrap();
        db.execute_script("UPDATE a SET n = 2; UPDATE other.b SET n = 2").await.unwrap();
        assert_eq!(
            snapshot.query_values::<i64>("SELECT n FROM other.b UNION ALL SELECT n FROM a", ()).await.unwrap(),
            [1, 1]
        );
        drop(snapshot);
        assert_eq!(
            db.query_values::<i64>("SELECT n FROM other.b UNION ALL SELECT n FROM a", ()).await.unwrap(),
            [2, 2]
        );
    });
}

#[test]
fn a_read_that_runs_when_its_snapshot_is_dropped_keeps_its_deadline() {
    let file = TestFile::new();
    run(async {
        let db = accounts(file.options()).await;
        let hasty = db.with_timeout(Duration::from_millis(100));
        let snapshot = hasty.snapshot().timeout(Duration::from_secs(3600)).await.unwrap();
        let mut read = snapshot.query(ENDLESS, ());
        assert!(futures_util::poll!(&mut read).is_pending());
        drop(snapshot);
        assert_eq!(read.await.unwrap_err().kind(), ErrorKind::Timeout);
        until(|| db.stats().readers_held == 0).await;
    });
}
