//! Results that are read in parts.

use flatwater::{ErrorKind, Session};
use futures_util::future::join_all;

use super::double::{Double, runtime};
use super::sqld::{Fault, Proxy, Sqld};

/// More than a libSQL server puts into one answer.
const LONG: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT ?)
    SELECT x, hex(zeroblob(200)) AS long FROM n";
/// So many rows have 12 MB.
const ROWS: i64 = 30_000;

async fn sum(on: &Session, rows: i64) -> (i64, i64) {
    let (mut rows, mut sum) = (on.stream(LONG, (rows,)), 0);
    let mut count = 0;
    while let Some(row) = rows.next().await {
        let row = row.unwrap();
        assert_eq!(row.get::<String>("long").unwrap().len(), 400);
        sum += row.get::<i64>("x").unwrap();
        count += 1;
    }
    (count, sum)
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_long_result_of_a_libsql_server_is_read_as_it_comes() {
    let server = Sqld::start();
    let remote = server.connect();
    runtime().block_on(async {
        assert_eq!(sum(&remote, ROWS).await, (ROWS, ROWS * (ROWS + 1) / 2));
        // Whole, it is longer than the server answers.
        assert_eq!(remote.query(LONG, (ROWS,)).await.unwrap_err().sqlite_name(), Some("SQLITE_TOOBIG"));
        // Many at once, and more than the server has connections, one after the other, of which only the beginning is read.
        let all = join_all((0..40).map(|_| sum(&remote, 2_000))).await;
        assert!(all.into_iter().all(|one| one == (2_000, 2_001_000)));
        for _ in 0..150 {
            let mut rows = remote.stream(LONG, (ROWS,));
            assert_eq!(rows.next().await.unwrap().unwrap().get::<i64>(0).unwrap(), 1);
        }
        remote.execute("CREATE TABLE t (a)", ()).await.unwrap();
        // What is small, empty, wrong, or fails in its middle.
        let mut batches = remote.batches("SELECT a FROM t", ());
        assert!(batches.next().await.is_none());
        let wrong = remote.stream("SELECT a FROM missing", ()).next().await.unwrap().unwrap_err();
        assert_eq!((wrong.kind(), wrong.sqlite_name()), (ErrorKind::Sql, Some("SQLITE_ERROR")));
        let fails = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 5000)
            SELECT CASE x WHEN 4000 THEN abs(-9223372036854775807 - 1) ELSE x END FROM n";
        let (mut rows, mut before) = (remote.stream(fails, ()), 0);
        let error = loop {
            match rows.next().await.unwrap() {
                Ok(_) => before += 1,
                Err(error) => break error,
            }
        };
        assert!(before == 3999 && error.message().contains("integer overflow"), "{before}: {error}");
        assert!(rows.next().await.is_none());
    });
}

#[test]
#[ignore = "needs sqld: make test-libsql"]
fn a_libsql_result_that_is_cut_is_an_error_or_is_read_anew() {
    let server = Sqld::start();
    let proxy = Proxy::before(&server);
    let remote = proxy.connect();
    runtime().block_on(async {
        for fault in [Fault::DropBefore, Fault::DropAfter, Fault::HalfAnAnswer, Fault::Nonsense] {
            proxy.script(&[fault]);
            let mut rows = remote.stream("SELECT 1 AS a", ());
            assert_eq!(rows.next().await.unwrap().unwrap().get::<i64>(0).unwrap(), 1, "{fault:?}");
            assert!(rows.next().await.is_none());
        }
    });
}

#[test]
fn a_cluster_has_no_cursors_and_reads_whole() {
    let double = Double::start();
    let cluster = double.connect();
    runtime().block_on(async {
        let mut rows = cluster.stream("SELECT 1 AS a UNION ALL SELECT 2", ());
        assert_eq!(rows.next().await.unwrap().unwrap().get::<i64>(0).unwrap(), 1);
        assert_eq!(rows.next().await.unwrap().unwrap().get::<i64>(0).unwrap(), 2);
        assert!(rows.next().await.is_none());
    });
}
