//! Texts that are used once, such as those with values in them: they do not displace texts that are used again.

use flatwater::{Database, Options};

use crate::inline_transactions::unhurried;
use crate::support::{TestFile, run};

const FIND: &str = "SELECT a FROM t WHERE rowid = ?";
const ADD: &str = "INSERT INTO t VALUES (?)";

async fn opened(options: Options) -> Database {
    let db = unhurried(options.readers(1)).open().await.unwrap();
    db.execute_script("CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)").await.unwrap();
    db
}

/// Uses the text until it runs on its caller's thread, for which its connection must have it prepared.
async fn make_hot(db: &Database) {
    let inline = db.stats().inline;
    while db.stats().inline.reads == inline.reads {
        db.query(FIND, (1,)).await.unwrap();
    }
    while db.stats().inline.writes == inline.writes {
        db.execute(ADD, (1,)).await.unwrap();
    }
}

/// Returns whether the next read and the next write are run on this thread.
async fn is_hot(db: &Database) -> bool {
    let before = db.stats().inline;
    db.query(FIND, (1,)).await.unwrap();
    db.execute(ADD, (1,)).await.unwrap();
    let after = db.stats().inline;
    (after.reads, after.writes) == (before.reads + 1, before.writes + 1)
}

#[test]
fn ten_thousand_texts_that_are_used_once_leave_a_hot_text_prepared() {
    let file = TestFile::new();
    run(async {
        let db = opened(file.options()).await;
        make_hot(&db).await;
        for number in 0..10_000 {
            db.query(&format!("SELECT {number} FROM t WHERE rowid = 1"), ()).await.unwrap();
        }
        for number in 0..500 {
            db.execute(&format!("DELETE FROM t WHERE rowid = -{number}"), ()).await.unwrap();
        }
        assert!(is_hot(&db).await, "{:?}", db.stats().inline);
        db.close().await.unwrap();
    });
}

#[test]
fn new_hot_texts_take_the_place_of_old_ones() {
    let file = TestFile::new();
    run(async {
        let db = opened(file.options()).await;
        // Old texts, used often, as many as can be kept prepared. Then the program uses others.
        for number in 0..3 * 128 {
            db.query(&format!("SELECT {} FROM t WHERE rowid = 1", number % 128), ()).await.unwrap();
        }
        let before = db.stats().inline.reads;
        for number in 0..10 * 100 {
            db.query(&format!("SELECT -{} FROM t WHERE rowid = 2", number % 100), ()).await.unwrap();
        }
        let inline = db.stats().inline.reads - before;
        assert!(inline >= 500, "only {inline} of 1,000 reads found their text prepared");
        db.close().await.unwrap();
    });
}

#[test]
fn one_prepared_statement_is_enough() {
    let file = TestFile::new();
    run(async {
        let db = opened(file.options().statement_cache(1)).await;
        make_hot(&db).await;
        for number in 0..10 {
            let sql = format!("SELECT {number} FROM t WHERE rowid = 1");
            for _ in 0..3 {
                assert_eq!(db.query_value::<i64>(&sql, ()).await.unwrap(), Some(number));
            }
        }
        db.close().await.unwrap();
    });
}
