//! Functions of a front end's language that are timed: they may run on the threads of their callers, in reads.
//!
//! Leaves out: functions of which the program says that they are short (`short`), and the lock of an interpreter, which
//! the tests of the front end have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flatwater::bindings::functions::{Function, create};
use flatwater::{Database, ErrorKind};

use crate::support::{TestFile, empty_table, run};

/// What `timed(x)` does, which returns x.
#[derive(Default)]
struct Timed {
    /// How often it was called on the thread that created it, and on others.
    here: AtomicU64,
    elsewhere: AtomicU64,
    /// It takes 5 ms.
    is_slow: AtomicBool,
}

impl Timed {
    fn create(db: &Database) -> Arc<Self> {
        let timed = Arc::<Self>::default();
        let (called, own) = (timed.clone(), thread::current().id());
        let function = move |context: &rusqlite::functions::Context<'_>| {
            let count = if thread::current().id() == own { &called.here } else { &called.elsewhere };
            count.fetch_add(1, Ordering::Relaxed);
            if called.is_slow.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            match context.get::<i64>(0)? {
                -1 => Err(rusqlite::Error::UserFunctionError("planted".into())),
                value => Ok(value),
            }
        };
        create(db, Function::timed("timed", 1, function).unwrap()).unwrap();
        timed
    }

    /// Calls until one runs on this thread. Returns the number of calls before.
    async fn until_here(&self, mut call: impl AsyncFnMut()) -> u64 {
        for n in 0.. {
            let before = self.here.load(Ordering::Relaxed);
            call().await;
            if self.here.load(Ordering::Relaxed) > before {
                return n;
            }
        }
        unreachable!()
    }

    fn counts(&self) -> (u64, u64) {
        (self.here.load(Ordering::Relaxed), self.elsewhere.load(Ordering::Relaxed))
    }
}

async fn read(db: &Database) {
    assert_eq!(db.query_value::<i64>("SELECT timed(?)", (7,)).await.unwrap(), 7);
}

#[test]
fn a_timed_function_runs_on_its_callers_thread_in_reads_that_were_short_eight_times() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1)).await;
        let timed = Timed::create(&db);
        assert!(timed.until_here(async || read(&db).await).await >= 8);
        // Another one of that name has no history.
        let next = Timed::create(&db);
        assert!(next.until_here(async || read(&db).await).await >= 8);
        assert_eq!(timed.counts().0, 1);
    });
}

#[test]
fn it_runs_on_a_thread_of_the_database_where_a_lock_is_held_and_in_writes() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1)).await;
        let timed = Timed::create(&db);
        timed.until_here(async || read(&db).await).await;
        let (here, _) = timed.counts();
        let own = db.connection();
        for n in 0..30 {
            db.execute("INSERT INTO t VALUES (timed(?))", (n,)).await.unwrap();
            let tx = db.begin().await.unwrap();
            tx.query("SELECT timed(?)", (7,)).await.unwrap();
            tx.execute("INSERT INTO t VALUES (timed(?) + 0)", (n,)).await.unwrap();
            tx.commit().await.unwrap();
            own.query("SELECT timed(?)", (7,)).await.unwrap();
            db.snapshot().await.unwrap().query("SELECT timed(?)", (7,)).await.unwrap();
            let mut batches = db.batches("SELECT timed(?)", (7,));
            assert_eq!(batches.next().await.unwrap().unwrap().len(), 1);
        }
        let (still_here, elsewhere) = timed.counts();
        assert_eq!(still_here, here);
        assert!(elsewhere >= 180);
        timed.until_here(async || read(&db).await).await;
    });
}

#[test]
fn its_error_is_reported_from_there_and_it_is_called_once() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1)).await;
        let timed = Timed::create(&db);
        // A call that was slow on a busy machine sends the next one to a thread of the database.
        let mut ran_here = 0;
        while ran_here < 3 {
            timed.until_here(async || read(&db).await).await;
            let (here, elsewhere) = timed.counts();
            let error = db.query("SELECT timed(?)", (-1,)).await.unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Sql, "planted"));
            assert_eq!(std::error::Error::source(&error).map(ToString::to_string), Some("planted".into()));
            assert_eq!(error.operation(), Some("query"));
            let (now_here, now_elsewhere) = timed.counts();
            assert_eq!(now_here + now_elsewhere, here + elsewhere + 1);
            ran_here += now_here - here;
        }
    });
}

#[test]
fn one_call_that_was_slow_sends_the_next_ones_to_a_thread_of_the_database() {
    let file = TestFile::new();
    run(async {
        let db = empty_table(file.options().readers(1)).await;
        let timed = Timed::create(&db);
        timed.until_here(async || read(&db).await).await;
        timed.is_slow.store(true, Ordering::Relaxed);
        let began = Instant::now();
        timed.until_here(async || read(&db).await).await;
        assert!(began.elapsed() >= Duration::from_millis(5));
        let (here, _) = timed.counts();
        for _ in 0..20 {
            read(&db).await;
        }
        assert_eq!(timed.counts().0, here);
        timed.is_slow.store(false, Ordering::Relaxed);
        timed.until_here(async || read(&db).await).await;
    });
}
