//! Streams and cursors: every row once, one point in time, bounded batches, and the reader given back at every end.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use flatwater::calls::RowStream;
use flatwater::{Database, ErrorKind, Options};
use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};

use crate::place::{Place, in_both_places};
use crate::support::{ENDLESS, TestFile, run, until};

in_both_places!(
    a_stream_yields_every_row_once_and_in_order,
    a_result_that_fits_into_one_batch_holds_no_reader,
    all_batches_are_of_one_point_in_time,
    a_dropped_next_loses_no_row,
    a_stream_of_returning_yields_what_was_written,
    a_stream_in_a_transaction_sees_its_writes,
    a_text_that_is_wrong_fails_at_the_first_row_and_then_ends,
    an_error_in_the_middle_ends_the_stream,
    an_error_of_a_row_has_its_number_in_the_whole_result,
    a_deadline_ends_a_fetch,
    a_stream_that_outlives_its_transaction_or_snapshot_says_so,
    a_stream_that_outlives_its_connection_says_so,
);

const ROWS: i64 = 50_000;
const FILL: &str = "INSERT INTO t WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 50000) \
     SELECT x, printf('row %d', x) FROM n";
const ALL: &str = "SELECT id, name FROM t ORDER BY id";

async fn filled(options: Options) -> Database {
    let db = options.open().await.unwrap();
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", ()).await.unwrap();
    db.execute(FILL, ()).await.unwrap();
    db
}

/// Waits until no reader is held, and shows that all can be held again.
async fn all_readers_are_back(db: &Database) {
    until(|| db.stats().readers_held == 0).await;
    if db.stats().one_connection {
        return;
    }
    // Snapshots, which the limit of an idle stream does not end.
    let mut snapshots = Vec::new();
    for _ in 0..EXTRA {
        snapshots.push(db.snapshot().await.unwrap());
    }
    assert_eq!(db.stats().readers_held, EXTRA);
    drop(snapshots);
    until(|| db.stats().readers_held == 0).await;
}

const EXTRA: usize = 3;

fn few(options: Options) -> Options {
    options.readers(2).tuning(|t| t.extra_readers(EXTRA))
}

async fn ids(stream: RowStream<(i64, String)>) -> Vec<i64> {
    let rows: Vec<_> = stream.try_collect().await.unwrap();
    assert!(rows.iter().all(|(id, name)| *name == format!("row {id}")));
    rows.into_iter().map(|(id, _)| id).collect()
}

async fn a_stream_yields_every_row_once_and_in_order(place: &Place) {
    let db = filled(few(place.options())).await;
    assert_eq!(ids(db.stream_as(ALL, ())).await, (1..=ROWS).collect::<Vec<_>>());
    let mut rows = db.stream("SELECT id, name FROM t WHERE id > ? ORDER BY id", (10,));
    let mut expected = 11..=ROWS;
    while let Some(row) = rows.next().await {
        let row = row.unwrap();
        assert_eq!(Some(row.get::<i64>("id").unwrap()), expected.next());
    }
    assert_eq!(expected.next(), None);
    assert!(rows.next().await.is_none(), "a stream that has ended stays so");
    // Rows may outlive their stream.
    let kept: Vec<_> = db.stream(ALL, ()).skip(1000).take(50).try_collect().await.unwrap();
    assert_eq!(kept[49].get::<i64>(0).unwrap(), 1050);
    all_readers_are_back(&db).await;
}

async fn a_result_that_fits_into_one_batch_holds_no_reader(place: &Place) {
    let db = filled(place.options()).await;
    let mut rows = db.stream("SELECT id FROM t WHERE id <= 1000 ORDER BY id", ());
    assert!(rows.next().await.unwrap().is_ok());
    assert_eq!(db.stats().readers_held, 0);
    assert_eq!(rows.count().await, 999);
    assert!(db.stream("SELECT id FROM t WHERE id < 0", ()).next().await.is_none());
}

async fn all_batches_are_of_one_point_in_time(place: &Place) {
    let db = filled(place.options()).await;
    let mut rows = db.stream_as::<(i64, String)>(ALL, ());
    assert_eq!(rows.next().await.unwrap().unwrap().0, 1);
    assert_eq!(db.execute("DELETE FROM t WHERE id > 1", ()).await.unwrap().changes, 49_999);
    db.execute("ALTER TABLE t RENAME TO u", ()).await.unwrap();
    assert_eq!(ids(rows).await.len(), 49_999);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM u", ()).await.unwrap(), Some(1));
}

async fn a_dropped_next_loses_no_row(place: &Place) {
    let db = filled(place.options()).await;
    let mut rows = db.stream_as::<(i64, String)>(ALL, ());
    let mut seen = 0;
    loop {
        // The future is dropped after one poll, at every row and in the middle of every fetch.
        let row = match pin!(rows.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(row) => row,
            Poll::Pending => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        let Some(row) = row else { break };
        seen += 1;
        assert_eq!(row.unwrap().0, seen);
    }
    assert_eq!(seen, ROWS);
}

async fn a_stream_of_returning_yields_what_was_written(place: &Place) {
    let db = filled(place.options()).await;
    let deleted = db.stream_as::<(i64,)>("DELETE FROM t WHERE id > ? RETURNING id", (2000,));
    let deleted: Vec<_> = deleted.try_collect().await.unwrap();
    assert_eq!(deleted.len(), 48_000);
    assert_eq!(db.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(2000));
}

async fn a_stream_in_a_transaction_sees_its_writes(place: &Place) {
    let db = filled(place.options()).await;
    let tx = db.begin().await.unwrap();
    tx.execute("INSERT INTO t VALUES (50001, 'row 50001')", ()).await.unwrap();
    assert_eq!(ids(tx.stream_as(ALL, ())).await.len(), 50_001);
    tx.rollback().await.unwrap();
    assert_eq!(ids(db.stream_as(ALL, ())).await.len(), 50_000);
}

async fn a_text_that_is_wrong_fails_at_the_first_row_and_then_ends(place: &Place) {
    let db = filled(few(place.options())).await;
    for (sql, kind) in [
        ("SELECT nothing FROM t", ErrorKind::Sql),
        ("SELECT 1; SELECT 2", ErrorKind::Misuse),
        ("CREATE TABLE u (a)", ErrorKind::Misuse),
        ("SELECT ? FROM t", ErrorKind::Misuse),
    ] {
        let mut rows = db.stream(sql, ());
        let error = rows.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.sql(), Some(sql));
        assert!(rows.next().await.is_none());
    }
    let mut rows = db.stream_as::<(i64,)>(ALL, ());
    assert_eq!(rows.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse, "a row with two columns");
    drop(rows);
    all_readers_are_back(&db).await;
}

async fn an_error_in_the_middle_ends_the_stream(place: &Place) {
    let db = filled(few(place.options())).await;
    let sql = "SELECT CASE id WHEN 40000 THEN abs(-9223372036854775807 - 1) ELSE id END FROM t ORDER BY id";
    let rows: Vec<_> = db.stream_as::<(i64,)>(sql, ()).collect().await;
    let (last, before) = rows.split_last().unwrap();
    assert!(last.as_ref().unwrap_err().message().contains("overflow"), "{last:?}");
    assert!(before.iter().zip(1..).all(|(row, id)| row.as_ref().unwrap().0 == id));
    all_readers_are_back(&db).await;
}

async fn an_error_of_a_row_has_its_number_in_the_whole_result(place: &Place) {
    let db = filled(few(place.options())).await;
    let sql = "SELECT CASE id WHEN 20000 THEN 'text' ELSE id END AS number FROM t ORDER BY id";
    let rows: Vec<_> = db.stream_as::<(i64,)>(sql, ()).collect().await;
    let errors: Vec<_> = rows.iter().filter_map(|row| row.as_ref().err()).collect();
    assert_eq!((rows.len(), errors.len()), (50_000, 1), "the rows behind it come all the same");
    assert_eq!((errors[0].row(), errors[0].sql()), (Some(19_999), Some(sql)));
    assert!(errors[0].message().contains("number"), "{}", errors[0]);
}

/// Its rows are those of the moment it was made for, or an error says why there are none.
async fn is_over(mut rows: RowStream<(i64, String)>) {
    let error = loop {
        match rows.next().await {
            Some(Ok((id, name))) => assert_eq!(name, format!("row {id}")),
            Some(Err(error)) => break error,
            None => panic!("the stream looks as if it were whole"),
        }
    };
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(["finished", "ended", "over"].iter().any(|word| error.message().contains(word)), "{error}");
    assert!(rows.next().await.is_none());
}

async fn a_stream_that_outlives_its_transaction_or_snapshot_says_so(place: &Place) {
    let db = filled(few(place.options())).await;
    for commits in [true, false] {
        let tx = db.begin().await.unwrap();
        let (unbegun, mut begun) = (tx.stream_as(ALL, ()), tx.stream_as::<(i64, String)>(ALL, ()));
        assert_eq!(begun.next().await.unwrap().unwrap().0, 1);
        if commits {
            tx.commit().await.unwrap();
        } else {
            drop(tx);
        }
        db.execute("UPDATE t SET name = 'other'", ()).await.unwrap();
        is_over(unbegun).await;
        // What is in memory is of its transaction.
        assert_eq!(ids(begun).await.len(), 49_999);
        db.execute("UPDATE t SET name = printf('row %d', id)", ()).await.unwrap();
    }

    let mut tx = db.begin().await.unwrap();
    let nested = tx.begin().await.unwrap();
    let of_nested = nested.stream_as(ALL, ());
    nested.commit().await.unwrap();
    tx.execute("UPDATE t SET name = 'other'", ()).await.unwrap();
    is_over(of_nested).await;
    assert_eq!(tx.query_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), ROWS, "the transaction goes on");
    tx.rollback().await.unwrap();

    let snapshot = db.snapshot().await.unwrap();
    let (unbegun, mut begun) = (snapshot.stream_as(ALL, ()), snapshot.stream_as::<(i64, String)>(ALL, ()));
    assert_eq!(begun.next().await.unwrap().unwrap().0, 1);
    drop(snapshot);
    db.execute("UPDATE t SET name = 'other'", ()).await.unwrap();
    is_over(unbegun).await;
    if db.stats().one_connection {
        assert_eq!(ids(begun).await.len(), 49_999);
    } else {
        is_over(begun).await;
    }
    all_readers_are_back(&db).await;
}

async fn a_stream_that_outlives_its_connection_says_so(place: &Place) {
    let db = filled(few(place.options())).await;
    for closes in [true, false] {
        let connection = db.connection();
        let (unbegun, mut begun) = (connection.stream(ALL, ()), connection.stream_as::<(i64, String)>(ALL, ()));
        assert_eq!(begun.next().await.unwrap().unwrap().0, 1);
        if closes {
            connection.close().await.unwrap();
        }
        drop(connection);
        let mut unbegun = unbegun;
        let error = unbegun.next().await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Closed), "{error}");
        assert!(unbegun.next().await.is_none());
        assert_eq!(ids(begun).await.len(), 49_999);
    }
    db.execute("UPDATE t SET name = 'other'", ()).await.unwrap();
    all_readers_are_back(&db).await;
}

async fn a_deadline_ends_a_fetch(place: &Place) {
    let db = filled(few(place.options())).await;
    let endless = format!("SELECT id FROM t UNION ALL SELECT * FROM ({ENDLESS})");
    let mut rows = db.with_timeout(Duration::from_millis(100)).stream(&endless, ());
    let mut last = None;
    while let Some(row) = rows.next().await {
        last = Some(row);
    }
    assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    all_readers_are_back(&db).await;
}

#[test]
fn point_reads_have_a_reader_while_streams_stall() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options())).await;
        let mut streams: Vec<_> = (0..EXTRA).map(|_| db.stream(ALL, ())).collect();
        for stream in &mut streams {
            assert!(stream.next().await.unwrap().is_ok());
        }
        until(|| db.stats().readers_held == EXTRA).await;
        assert!(db.stats().wal.oldest_read.is_some());
        let reads = (0..50).map(|id| db.query_optional_value::<String>("SELECT name FROM t WHERE id = ?", (id + 1,)));
        assert!(join_all(reads).await.into_iter().all(|name| name.unwrap().is_some()));
        // A further one waits until one ends.
        let mut late = tokio::spawn(async move {
            let mut rows = db.stream(ALL, ());
            (rows.next().await.unwrap().is_ok(), rows.count().await, db)
        });
        assert!(tokio::time::timeout(Duration::from_millis(50), &mut late).await.is_err());
        streams.pop();
        let (first, others, db) = late.await.unwrap();
        assert_eq!((first, others), (true, 49_999));
        drop(streams);
        all_readers_are_back(&db).await;
    });
}

#[test]
fn a_stream_dropped_at_any_point_gives_its_reader_back() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options())).await;
        drop(db.stream(ALL, ()));
        for rows in [1, 1023, 1024, 1025, 17_408, 17_409, 49_999] {
            let mut stream = db.stream(ALL, ());
            for _ in 0..rows {
                assert!(stream.next().await.unwrap().is_ok());
            }
            drop(stream);
            all_readers_are_back(&db).await;
        }
        // In the middle of the first fetch, and of a later one.
        for sql in [ENDLESS.to_owned(), format!("SELECT id FROM t UNION ALL SELECT * FROM ({ENDLESS})")] {
            let mut stream = db.stream(&sql, ());
            while let Ok(row) = tokio::time::timeout(Duration::from_millis(20), stream.next()).await {
                assert!(row.unwrap().is_ok());
            }
            drop(stream);
            all_readers_are_back(&db).await;
        }
    });
}

#[test]
fn a_stalled_stream_ends_with_a_timeout_that_says_so() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options().tuning(|t| t.stream_idle(Duration::from_millis(30))))).await;
        let mut rows = db.stream_as::<(i64, String)>(ALL, ());
        assert_eq!(rows.next().await.unwrap().unwrap().0, 1);
        until(|| db.stats().readers_held == 0).await;
        let (mut seen, mut error) = (1, None);
        while let Some(row) = rows.next().await {
            match row {
                Ok((id, _)) => {
                    seen += 1;
                    assert_eq!(id, seen);
                }
                Err(ended) => error = Some(ended),
            }
        }
        let error = error.expect("the stream must not look as if it were whole");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Expired, false), "{error}");
        assert!(error.hint().unwrap().contains("stream_idle"), "{error}");
        assert!(seen < ROWS);
        all_readers_are_back(&db).await;
    });
}

#[test]
fn a_batch_is_bounded_in_rows_and_in_bytes() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options())).await;
        let mut cursor = db.batches(ALL, ());
        let mut sizes = Vec::new();
        while let Some(batch) = cursor.next().await.transpose().unwrap() {
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [1024, 16_384, 16_384, 16_208]);
        let mut cursor = db.batches("SELECT a.id, b.id, a.name, b.name FROM t AS a, t AS b LIMIT 20000", ());
        let mut sizes = Vec::new();
        while let Some(batch) = cursor.next().await.transpose().unwrap() {
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [1024, 8192, 8192, 2592]);
        let mut cursor = db.batches("SELECT zeroblob(100000) FROM t LIMIT 10", ());
        let mut sizes = Vec::new();
        while let Some(batch) = cursor.next().await.transpose().unwrap() {
            sizes.push(batch.len());
        }
        assert_eq!(sizes, [3, 3, 3, 1]);
        assert!(cursor.next().await.transpose().unwrap().is_none());
        all_readers_are_back(&db).await;
    });
}

#[test]
fn closing_waits_for_a_stream_and_then_ends_it() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options()).tuning(|t| t.close_wait(Duration::from_secs(3600)))).await;
        let mut rows = db.stream(ALL, ());
        assert!(rows.next().await.unwrap().is_ok());
        let closing = db.close();
        let (closed, others) = tokio::join!(closing, rows.count());
        closed.unwrap();
        assert_eq!(others, 49_999);

        let db = few(file.options()).tuning(|t| t.close_wait(Duration::from_millis(20))).open().await.unwrap();
        let mut rows = db.stream(ALL, ());
        assert!(rows.next().await.unwrap().is_ok());
        db.close().await.unwrap();
        let rest: Vec<_> = rows.collect().await;
        assert_eq!(rest.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Closed);
        let error = db.stream(ALL, ()).next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed);
    });
}

#[test]
fn the_same_text_may_be_streamed_many_times_at_once() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options())).await;
        let streams = (0..20).map(|_| ids(db.stream_as(ALL, ())));
        for ids in join_all(streams).await {
            assert_eq!(ids.len(), 50_000);
        }
        all_readers_are_back(&db).await;
        db.close().await.unwrap();
    });
}

/// Uses the rows of a stream for longer than the limit. Returns how many came, and the longest time without a row.
async fn used_slowly(db: &Database, limit: Duration) -> (i64, Duration) {
    let mut rows = db.stream_as::<(i64, String)>(ALL, ());
    let began = Instant::now();
    let (mut seen, mut last, mut longest_pause) = (0, began, Duration::ZERO);
    while let Some(row) = rows.next().await {
        longest_pause = longest_pause.max(last.elapsed());
        last = Instant::now();
        if let Err(error) = row {
            assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
            break;
        }
        seen += 1;
        // The batches take longer than the limit, each of them.
        if seen % 50 == 0 && began.elapsed() < 3 * limit {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    (seen, longest_pause)
}

#[test]
fn a_stream_whose_rows_are_used_slowly_goes_on() {
    let file = TestFile::new();
    run(async {
        let limit = Duration::from_millis(300);
        let db = filled(few(file.options().tuning(|t| t.stream_idle(limit)))).await;
        for time in 0.. {
            let (seen, longest_pause) = used_slowly(&db, limit).await;
            if seen == ROWS {
                break;
            }
            // A machine with other work may make a pause of its own.
            assert!(
                time < 100 && longest_pause >= limit,
                "it ended after {seen} rows and {longest_pause:?} of a pause"
            );
        }
    });
}

#[test]
fn a_stream_that_ended_with_an_error_of_its_type_holds_no_reader() {
    let file = TestFile::new();
    run(async {
        let db = filled(few(file.options())).await;
        let mut rows = db.stream_as::<(i64,)>(ALL, ());
        assert_eq!(rows.next().await.unwrap().unwrap_err().kind(), ErrorKind::Misuse);
        assert!(rows.next().await.is_none());
        until(|| db.stats().readers_held == 0).await;
        drop(rows);
    });
}
