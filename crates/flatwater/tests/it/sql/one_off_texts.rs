//! Texts that are used once, such as those with values in them: they do not displace texts that are used again, and are
//! members of groups.

use flatwater::{Database, Error, ErrorKind, Options};
use futures_util::future::join_all;

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, grouped, run, unhurried, until};

in_both_places!(
    writes_that_differ_in_literals_are_one_group,
    a_text_that_never_ran_is_no_member_if_it_has_a_deadline,
    a_text_with_literals_that_fails_costs_a_group_one_replay,
    a_text_that_is_like_members_and_may_not_be_one_runs_alone,
);

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
        // Again if its connection was not free just then.
        for time in 0.. {
            make_hot(&db).await;
            for number in 10_000 * time..10_000 * (time + 1) {
                db.query(format!("SELECT {number} FROM t WHERE rowid = 1"), ()).await.unwrap();
            }
            for number in 500 * time..500 * (time + 1) {
                db.execute(format!("DELETE FROM t WHERE rowid = -{number}"), ()).await.unwrap();
            }
            if is_hot(&db).await {
                break;
            }
            assert!(time < 20, "{:?}", db.stats().inline);
        }
        db.close().await.unwrap();
    });
}

#[test]
fn new_hot_texts_take_the_place_of_old_ones() {
    // On a machine with other work their connection may not be free for a while.
    for time in 0.. {
        let file = TestFile::new();
        let inline = run(async {
            let db = opened(file.options()).await;
            // Old texts, used often, as many as can be kept prepared. Then the program uses others.
            for number in 0..3 * 128 {
                db.query(format!("SELECT {} FROM t WHERE rowid = 1", number % 128), ()).await.unwrap();
            }
            let before = db.stats().inline.reads;
            for number in 0..10 * 100 {
                db.query(format!("SELECT -{} FROM t WHERE rowid = 2", number % 100), ()).await.unwrap();
            }
            let inline = db.stats().inline.reads - before;
            db.close().await.unwrap();
            inline
        });
        if inline >= 500 {
            break;
        }
        assert!(time < 20, "only {inline} of 1,000 reads found their text prepared");
    }
}

#[test]
fn one_prepared_statement_is_enough() {
    let file = TestFile::new();
    run(async {
        let db = opened(file.options().tuning(|t| t.statement_cache(1))).await;
        make_hot(&db).await;
        for number in 0..10 {
            let sql = format!("SELECT {number} FROM t WHERE rowid = 1");
            for _ in 0..3 {
                assert_eq!(db.query_optional_value::<i64>(&sql, ()).await.unwrap(), Some(number));
            }
        }
        db.close().await.unwrap();
    });
}

/// Submits the writes behind an open transaction, so that they wait together.
async fn together(db: &Database, texts: &[String]) -> Vec<Result<u64, Error>> {
    let transaction = db.begin().await.unwrap();
    let writes = texts.iter().map(|sql| db.execute(sql, ()));
    let (results, ()) = futures_util::join!(join_all(writes), async {
        until(|| db.stats().writes_waiting == texts.len()).await;
        transaction.commit().await.unwrap();
    });
    results.into_iter().map(|result| result.map(|executed| executed.changes)).collect()
}

/// Runs writes with new literals until one that was never run is a member.
async fn make_known(db: &Database, sql: impl Fn(usize) -> String) {
    let mut number = 1_000_000;
    while db.stats().members == 0 {
        let both = [sql(number), sql(number + 1)];
        assert!(together(db, &both).await.iter().all(Result::is_ok));
        number += 2;
    }
}

async fn writes_that_differ_in_literals_are_one_group(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ()).await.unwrap();
    let mut next = 0;
    // Until all of them were one group, which they are if those before them were short on this machine.
    loop {
        let before = db.stats();
        let texts: Vec<_> = (next..next + 100).map(|n| format!("INSERT INTO t VALUES ({n}, 'it''s {n}')")).collect();
        assert!(together(&db, &texts).await.iter().all(|changes| *changes == Ok(1)));
        next += 100;
        let after = db.stats();
        assert_eq!(after.replays, 0);
        if (after.groups - before.groups, after.members - before.members) == (1, 100) {
            break;
        }
    }
    let right = "SELECT count(*) FROM t WHERE b = 'it''s ' || a";
    assert_eq!(db.query_optional_value::<usize>(right, ()).await.unwrap(), Some(next));
    db.close().await.unwrap();
}

/// A member is not interrupted.
async fn a_text_that_never_ran_is_no_member_if_it_has_a_deadline(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)", ()).await.unwrap();
    make_known(&db, |number| format!("INSERT INTO t VALUES ({number})")).await;
    let before = db.stats().members;
    let texts = [1, 2, 3, 4].map(|number| format!("INSERT INTO t VALUES ({number})"));
    let results = together(&db.with_timeout(std::time::Duration::from_secs(3600)), &texts).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(db.stats().members, before);
    db.close().await.unwrap();
}

async fn a_text_with_literals_that_fails_costs_a_group_one_replay(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)", ()).await.unwrap();
    let mut next = 0;
    let mut fail_one = async || {
        let texts = [next, next + 1, next, next + 2].map(|number| format!("INSERT INTO t VALUES ({number})"));
        next += 3;
        let results = together(&db, &texts).await;
        let kinds: Vec<_> = results.iter().map(|result| result.as_ref().err().map(Error::kind)).collect();
        assert_eq!(kinds, [None, None, Some(ErrorKind::Constraint), None]);
        next
    };
    while db.stats().replays == 0 {
        fail_one().await;
    }
    // From now on there is a savepoint.
    let (replays, members) = (db.stats().replays, db.stats().members);
    let mut count = 0;
    while db.stats().members < members + 8 {
        count = fail_one().await;
    }
    assert_eq!(db.stats().replays, replays);
    assert_eq!(db.query_optional_value::<usize>("SELECT count(*) FROM t", ()).await.unwrap(), Some(count));
    db.close().await.unwrap();
}

async fn a_text_that_is_like_members_and_may_not_be_one_runs_alone(place: &Place) {
    let db = grouped(place.options()).open().await.unwrap();
    db.execute_script(
        "CREATE TABLE plain (a); CREATE TABLE strict (a);
         CREATE TRIGGER no BEFORE INSERT ON strict WHEN new.a < 0 BEGIN SELECT RAISE(ROLLBACK, 'negative'); END",
    )
    .await
    .unwrap();
    make_known(&db, |number| format!("INSERT INTO 'plain' VALUES ({number})")).await;
    let texts = [("plain", 1), ("strict", 2), ("plain", 3), ("strict", -4), ("plain", 5)];
    let texts = texts.map(|(table, number)| format!("INSERT INTO '{table}' VALUES (abs({number}) * sign({number}))"));
    for _ in 0..3 {
        let results = together(&db, &texts).await;
        let kinds: Vec<_> = results.iter().map(|result| result.as_ref().err().map(Error::kind)).collect();
        assert_eq!(kinds, [None, None, None, Some(ErrorKind::Constraint), None]);
    }
    let counts = "SELECT (SELECT count(*) FROM plain WHERE a < 10) * 10 + (SELECT count(*) FROM strict)";
    assert_eq!(db.query_optional_value::<i64>(counts, ()).await.unwrap(), Some(93));
    db.close().await.unwrap();
}
