//! Nested transactions whose handles are dropped in every way: which changes are kept and which are undone.
//!
//! Leaves out: nested transactions that are ended normally (`interactive`).

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use flatwater::calls::TimeoutEffect;
use flatwater::{Call, Database, Error, ErrorKind, Result, Transaction};
use futures_util::FutureExt;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::interactive::{content, insert};
use crate::place::{Place, in_both_places};
use crate::support::{empty_table, until};

in_both_places!(
    a_nested_rollback_that_is_given_up_undoes_all_the_same,
    a_nested_commit_that_is_given_up_before_it_ran_keeps_nothing,
    after_a_nested_begin_that_is_given_up_a_rollback_is_the_outer_ones,
    a_nested_transaction_that_is_forgotten_is_undone_by_the_next_use_of_the_outer_one,
    a_call_of_a_nested_transaction_that_is_over_is_refused_whoever_stands_there_now,
    a_call_that_was_made_before_a_nested_transaction_is_refused_inside_of_it,
    a_nested_transaction_whose_end_times_out_is_undone,
    what_nested_transactions_of_any_depth_leave_is_what_their_ends_say,
);

/// Returns the rows that the transaction sees.
async fn visible(tx: &Transaction<'_>) -> Vec<i64> {
    tx.query_as::<(i64,)>("SELECT a FROM t ORDER BY a", ()).await.unwrap().into_iter().map(|(a,)| a).collect()
}

/// A waker that blocks the thread that calls it.
struct Gate {
    /// The thread that closes it.
    by: ThreadId,
    /// A poll there has woken it: the answer is there, and other tasks have their turn before.
    yielded: AtomicBool,
    reached: AtomicBool,
    opened: Barrier,
}

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        if thread::current().id() == self.by {
            return self.yielded.store(true, Ordering::SeqCst);
        }
        self.reached.store(true, Ordering::SeqCst);
        self.opened.wait();
    }
}

impl Gate {
    /// Blocks the thread that serves `tx`: it begins no other work until the gate is opened.
    async fn close(tx: &Transaction<'_>) -> Arc<Self> {
        let (yielded, reached) = (AtomicBool::new(false), AtomicBool::new(false));
        let gate = Arc::new(Self { by: thread::current().id(), yielded, reached, opened: Barrier::new(2) });
        let waker: Waker = gate.clone().into();
        let mut context = Context::from_waker(&waker);
        // A script is the writer's thread's, always.
        let mut call = tx.execute_script("SELECT 1");
        // An answer that is there at once wakes nobody.
        loop {
            if call.poll_unpin(&mut context).is_ready() {
                call = tx.execute_script("SELECT 1");
            } else if !gate.yielded.swap(false, Ordering::SeqCst) {
                break;
            }
        }
        until(|| gate.reached.load(Ordering::SeqCst)).await;
        gate
    }

    fn open(&self) {
        self.opened.wait();
    }
}

/// Makes a call that the blocked thread has to serve, and drops it before it completes.
async fn given_up<T>(call: Call<T>) {
    let mut call = Box::pin(call.never_inline());
    assert!(futures_util::poll!(call.as_mut()).is_pending());
}

async fn a_nested_rollback_that_is_given_up_undoes_all_the_same(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    let nested = tx.begin().await.unwrap();
    insert(&nested, 2).await;
    let gate = Gate::close(&nested).await;
    given_up(nested.rollback()).await;
    gate.open();
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1]);
    let mut tx = db.begin().await.unwrap();
    let nested = tx.begin().await.unwrap();
    insert(&nested, 2).await;
    drop(nested.rollback());
    insert(&tx, 3).await;
    assert_eq!(visible(&tx).await, [1, 3]);
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 3]);
}

async fn a_nested_commit_that_is_given_up_before_it_ran_keeps_nothing(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    let mut nested = tx.begin().await.unwrap();
    insert(&nested, 2).await;
    let innermost = nested.begin().await.unwrap();
    insert(&innermost, 3).await;
    let gate = Gate::close(&innermost).await;
    given_up(innermost.commit()).await;
    gate.open();
    assert_eq!(visible(&nested).await, [1, 2]);
    nested.commit().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 2]);
}

/// A call borrows nothing, so it may be polled while a nested transaction is open that was begun after it was made.
async fn a_call_that_was_made_before_a_nested_transaction_is_refused_inside_of_it(place: &Place) {
    const INSERT: &str = "INSERT INTO t VALUES (?)";
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    let execute = tx.execute(INSERT, (10,));
    let many = tx.execute_many(INSERT, [(11,)]);
    let mut stream = tx.stream("SELECT 1", ());
    let (step, later) = (tx.savepoint("a"), tx.execute(INSERT, (3,)));
    let mut nested = tx.begin().await.unwrap();
    insert(&nested, 1).await;
    let outer = nested.execute(INSERT, (12,));
    let innermost = nested.begin().await.unwrap();
    insert(&innermost, 2).await;
    let refused = [
        execute.await.unwrap_err(),
        many.await.unwrap_err(),
        stream.next().await.unwrap().unwrap_err(),
        step.await.unwrap_err(),
        outer.await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains("a nested transaction is open"), "{error}");
        assert!(error.hint().unwrap().contains("use the nested transaction"), "{error}");
    }
    innermost.commit().await.unwrap();
    nested.commit().await.unwrap();
    later.await.unwrap();
    assert_eq!(visible(&tx).await, [1, 2, 3]);
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 2, 3]);
}

/// Returns the number of calls of one kind that completed, or that ran after their caller had dropped them.
fn ran(db: &Database, kind: &str) -> u64 {
    db.stats().calls.iter().find(|calls| calls.kind == kind).map_or(0, |calls| calls.count)
}

async fn after_a_nested_begin_that_is_given_up_a_rollback_is_the_outer_ones(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    let mut outer = tx.begin().await.unwrap();
    insert(&outer, 1).await;
    let gate = Gate::close(&outer).await;
    given_up(outer.begin()).await;
    gate.open();
    outer.rollback().await.unwrap();
    assert_eq!(visible(&tx).await, [0_i64; 0]);
    let mut outer = tx.begin().await.unwrap();
    insert(&outer, 2).await;
    let before = ran(&db, "begin");
    let mut begin = Box::pin(outer.begin());
    let _ = futures_util::poll!(begin.as_mut());
    until(|| ran(&db, "begin") > before).await;
    drop(begin);
    outer.rollback().await.unwrap();
    insert(&tx, 3).await;
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [3]);
}

async fn a_nested_transaction_that_is_forgotten_is_undone_by_the_next_use_of_the_outer_one(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    let nested = tx.begin().await.unwrap();
    insert(&nested, 2).await;
    std::mem::forget(nested);
    insert(&tx, 3).await;
    assert_eq!(visible(&tx).await, [1, 3]);
    let mut outer = tx.begin().await.unwrap();
    insert(&outer, 4).await;
    let mut inner = outer.begin().await.unwrap();
    insert(&inner, 5).await;
    std::mem::forget(inner.begin().await.unwrap());
    std::mem::forget(inner);
    outer.rollback().await.unwrap();
    assert_eq!(visible(&tx).await, [1, 3]);
    std::mem::forget(tx.begin().await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1, 3]);
}

fn is_over(result: Result<impl std::fmt::Debug>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.message().contains("finished") && error.hint().is_some(), "{error}");
}

async fn a_call_of_a_nested_transaction_that_is_over_is_refused_whoever_stands_there_now(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    let mut late = Vec::new();
    for end in 0..3 {
        let nested = tx.begin().await.unwrap();
        late.extend((0..3).map(|_| nested.execute("INSERT INTO t VALUES (0)", ())));
        match end {
            0 => nested.commit().await.unwrap(),
            1 => nested.rollback().await.unwrap(),
            _ => drop(nested),
        }
        is_over(late.swap_remove(0).await);
    }
    let mut second = tx.begin().await.unwrap();
    insert(&second, 1).await;
    is_over(late.swap_remove(0).await);
    let innermost = second.begin().await.unwrap();
    insert(&innermost, 2).await;
    is_over(late.swap_remove(0).await);
    innermost.commit().await.unwrap();
    second.commit().await.unwrap();
    assert_eq!(visible(&tx).await, [1, 2]);
    is_over(late.swap_remove(0).await);
    tx.commit().await.unwrap();
    for late in late {
        assert_eq!(late.await.unwrap_err().kind(), ErrorKind::Misuse);
    }
    assert_eq!(content(&db).await, [1, 2]);
}

/// The end of a nested transaction misses its deadline, because an earlier call takes longer.
async fn ends_too_late(place: &Place, commit: bool) {
    let soon = Duration::from_millis(50);
    let db = empty_table(place.options()).await;
    let mut tx = db.begin().await.unwrap();
    insert(&tx, 1).await;
    let nested = tx.begin().await.unwrap();
    insert(&nested, 2).await;
    let gate = Gate::close(&nested).await;
    let end = if commit { nested.commit().timeout(soon).await } else { nested.rollback().timeout(soon).await };
    let error = end.unwrap_err();
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Timeout, Some(TimeoutEffect::No)), "{error}");
    gate.open();
    tx.commit().await.unwrap();
    assert_eq!(content(&db).await, [1], "commit: {commit}");
}

async fn a_nested_transaction_whose_end_times_out_is_undone(place: &Place) {
    let other = place.another();
    futures_util::join!(ends_too_late(place, true), ends_too_late(&other, false));
}

/// The expected rows: one list for each open transaction, the outermost first.
type Model = Vec<Vec<i64>>;

/// Random writes and nested transactions inside `tx`, with every way to end one.
fn wander<'a>(
    tx: &'a mut Transaction<'_>,
    random: &'a mut StdRng,
    model: &'a mut Model,
) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
    Box::pin(async move {
        for _ in 0..random.random_range(1..6) {
            if model.len() > 12 || random.random_bool(0.6) {
                let n = random.random_range(0..1000);
                tx.execute("INSERT INTO t VALUES (?)", (n,)).await?;
                model.last_mut().unwrap().push(n);
                continue;
            }
            let mut nested = tx.begin().await?;
            model.push(Vec::new());
            wander(&mut nested, random, model).await?;
            let inner = model.pop().unwrap();
            match random.random_range(0..8) {
                0..4 => {
                    nested.commit().await?;
                    model.last_mut().unwrap().extend(inner);
                }
                4 => nested.rollback().await?,
                5 => drop(nested),
                6 => drop(nested.commit()),
                _ => std::mem::forget(nested),
            }
            if random.random_bool(0.5) {
                let mut expected = model.concat();
                expected.sort_unstable();
                assert_eq!(visible(tx).await, expected);
            }
        }
        Ok(())
    })
}

async fn what_nested_transactions_of_any_depth_leave_is_what_their_ends_say(place: &Place) {
    let db = empty_table(place.options()).await;
    let mut committed = Vec::new();
    for seed in 0..60 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut model = vec![committed.clone()];
        let mut tx = db.begin().await.unwrap();
        wander(&mut tx, &mut random, &mut model).await.unwrap_or_else(|error: Error| panic!("{seed}: {error}"));
        if seed % 3 == 0 {
            tx.rollback().await.unwrap();
        } else {
            tx.commit().await.unwrap();
            committed = model.concat();
            committed.sort_unstable();
        }
        assert_eq!(content(&db).await, committed, "seed {seed}");
    }
    assert!(committed.len() > 100, "{committed:?}");
}
