//! A task whose waker writes, and sees whether the writer is free.

use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use flatwater::Database;
use flatwater::options::Checkpoint;

use crate::support::{TestFile, unhurried};

/// The time after which a test counts as hung. It only detects hangs.
pub(crate) const HANGS: Duration = Duration::from_secs(120);
pub(crate) const INSERT: &str = "INSERT INTO t (x) VALUES (?)";

/// A waker that writes, and records whether the write ran at once.
struct Writes {
    db: Database,
    tell: Mutex<Sender<bool>>,
}

impl Writes {
    fn writes_at_once(&self) -> bool {
        let before = self.db.stats().inline.writes;
        let mut write = self.db.execute(INSERT, (-1,));
        let _ = Pin::new(&mut write).poll(&mut Context::from_waker(Waker::noop()));
        self.db.stats().inline.writes > before
    }
}

impl Wake for Writes {
    fn wake(self: Arc<Self>) {
        self.tell.lock().unwrap().send(self.writes_at_once()).unwrap();
    }
}

/// A database, and a task whose waker writes.
pub(crate) struct Bench {
    _file: TestFile,
    pub(crate) db: Database,
    pub(crate) waker: Waker,
    pub(crate) told: Receiver<bool>,
    /// How often a waker's write ran at once.
    pub(crate) found_free: usize,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let file = TestFile::new();
        // The first write into a WAL that starts over is never inline, so it does not start over.
        let db = unhurried(file.options().checkpoint(Checkpoint::External)).open().wait().unwrap();
        db.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, x NOT NULL)").wait().unwrap();
        db.execute(INSERT, (0,)).wait().unwrap();
        let (tell, told) = channel();
        let writes = Arc::new(Writes { db: db.clone(), tell: Mutex::new(tell) });
        let began = Instant::now();
        while !writes.writes_at_once() {
            assert!(began.elapsed() < HANGS, "no write runs at once");
            short_again(&db);
        }
        Self { _file: file, db, waker: writes.into(), told, found_free: 0 }
    }

    /// Returns the result of the future. Each time the future suspends, waits for its waker.
    pub(crate) fn finish<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                return answer;
            }
            self.found_free += usize::from(self.told.recv_timeout(HANGS).expect("the waker hangs"));
        }
    }

    /// Repeats the call until its waker found the writer free.
    pub(crate) fn until_woken(&mut self, mut call: impl FnMut(&mut Self)) {
        let (before, began) = (self.found_free, Instant::now());
        while self.found_free == before {
            assert!(began.elapsed() < HANGS, "the writer is never free when a caller is woken");
            short_again(&self.db);
            call(self);
        }
    }
}

/// Short writes may use the queue for a while. Calls that a waker polls only once do not change that.
fn short_again(db: &Database) {
    db.execute(INSERT, (0,)).wait().unwrap();
}
