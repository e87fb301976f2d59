//! The kernel at work by itself: a writer, readers and a checkpointer on one file, as the engine puts them together.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use flatwater_base::error::{ErrorKind, Result};
use flatwater_base::thread::current::block_on;
use flatwater_base::values::params::Params;
use flatwater_sqlite::CheckpointMode;

use crate::options::Options;
use crate::queue::reply::reply;
use crate::queue::ticket::{CallOptions, Ticket};
use crate::workers::Answer;
use crate::workers::checkpoint::{Checkpointer, Powers};
use crate::workers::context::Context;
use crate::workers::interfaces::TakesOver;
use crate::workers::open_transaction::TransactionGuard;
use crate::workers::readers::Readers;
use crate::workers::request::Request;
use crate::workers::work::{self, Wanted, Work};
use crate::workers::writer::Writer;

struct Kernel {
    context: Arc<Context>,
    writer: Writer,
    readers: Readers,
    checkpointer: Checkpointer,
    _directory: tempfile::TempDir,
}

fn ticket() -> Arc<Ticket> {
    Arc::new(Ticket::new(CallOptions::default(), Instant::now()))
}

impl Kernel {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(directory.path().join("a.db")).resolve().unwrap();
        let crate::options::Checkpoint::Managed(managed) = options.checkpoint else { panic!("it is the default") };
        let context = Context::new(options);
        let writer = Writer::open(&context, &ticket()).unwrap();
        let takes_over: Arc<dyn TakesOver> = Arc::new(writer.clone());
        let readers = Readers::new(context.clone(), Some(takes_over));
        let weak = readers.downgrade();
        let powers = Powers {
            in_slot: Box::new(writer.in_slot()),
            end_leases: Box::new(move || Box::new(weak.upgrade().map(|readers| readers.end_leases()))),
            oldest_read: Box::new(|| None),
        };
        let checkpointer = Checkpointer::new(context.clone(), managed, powers);
        writer.tell(checkpointer.listener());
        Self { context, writer, readers, checkpointer, _directory: directory }
    }

    /// Has the writer do the work.
    fn write(&self, work: Work) -> Result<Answer> {
        let (promise, answer) = reply();
        self.writer.push(Request::new(ticket(), work, promise)).map_err(|(error, _)| error)?;
        block_on(answer).expect("the writer is there")
    }

    fn execute(&self, sql: &str) -> Result<u64> {
        let text = self.context.catalogue.text(sql);
        self.write(Work::execute(text, Params::default()))?.executed().map(|executed| executed.changes)
    }

    /// Has the readers do the work.
    fn read(&self, work: Work) -> Result<Answer> {
        let (promise, answer) = reply();
        self.readers.push(Request::new(ticket(), work, promise))?;
        block_on(answer).expect("the readers are there")
    }

    fn query(&self, sql: &str) -> Result<i64> {
        let text = self.context.catalogue.text(sql);
        let rows = self.read(Work::query(text, Params::default(), Wanted::All))?.rows()?;
        rows.get(0).unwrap().get(0)
    }

    fn step(&self, transaction: &TransactionGuard, work: Work) -> Result<Answer> {
        let (promise, answer) = reply();
        transaction.0.send(Request::new(ticket(), work, promise), &Vec::new())?;
        block_on(answer).expect("the transaction is there")
    }

    fn close(self) {
        let (closed, is_closed) = channel();
        let (readers, checkpointer) = (self.readers.clone(), self.checkpointer);
        let before = move || {
            readers.close(Instant::now() + Duration::from_secs(60));
            checkpointer.close();
            Duration::from_secs(60)
        };
        self.writer.close(Box::new(before), Box::new(move || closed.send(()).unwrap()));
        is_closed.recv().unwrap();
    }
}

#[test]
fn writes_reads_transactions_and_checkpoints_need_no_feature() {
    let kernel = Kernel::open();
    kernel.execute("CREATE TABLE t (n INTEGER UNIQUE)").unwrap();
    assert_eq!(kernel.execute("INSERT INTO t VALUES (1), (2)").unwrap(), 2);
    assert_eq!(kernel.query("SELECT sum(n) FROM t").unwrap(), 3);
    assert_eq!(kernel.execute("INSERT INTO t VALUES (1)").unwrap_err().kind(), ErrorKind::Constraint);

    let transaction = kernel.write(work::begin(None)).unwrap().transaction().unwrap();
    let text = kernel.context.catalogue.text("INSERT INTO t VALUES (10)");
    kernel.step(&transaction, Work::execute(text.clone(), Params::default())).unwrap();
    assert_eq!(kernel.query("SELECT sum(n) FROM t").unwrap(), 3, "it is not committed");
    kernel.step(&transaction, work::commit()).unwrap().done().unwrap();
    assert_eq!(kernel.query("SELECT sum(n) FROM t").unwrap(), 13);

    let dropped = kernel.write(work::begin(None)).unwrap().transaction().unwrap();
    kernel.step(&dropped, Work::execute(kernel.context.catalogue.text("DELETE FROM t"), Params::default())).unwrap();
    drop(dropped);
    assert_eq!(kernel.query("SELECT sum(n) FROM t").unwrap(), 13, "what is dropped is rolled back");

    let info = kernel.write(work::checkpoint(CheckpointMode::Truncate)).unwrap().checkpointed().unwrap();
    assert_eq!(info.frames, info.copied);
    kernel.close();
}

#[test]
fn writes_that_wait_together_keep_their_results() {
    let kernel = Kernel::open();
    kernel.execute("CREATE TABLE t (n INTEGER UNIQUE)").unwrap();
    let holds = kernel.write(work::begin(None)).unwrap().transaction().unwrap();
    let text = kernel.context.catalogue.text("INSERT INTO t VALUES (?)");
    let answers: Vec<_> = [1, 2, 1, 3]
        .into_iter()
        .map(|n| {
            let (promise, answer) = reply();
            let work = Work::execute(text.clone(), Params::positional([n]).unwrap());
            assert!(kernel.writer.push(Request::new(ticket(), work, promise)).is_ok());
            answer
        })
        .collect();
    drop(holds);
    let are_done = answers.into_iter().map(|answer| block_on(answer).expect("the writer is there").is_ok());
    assert_eq!(are_done.collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(kernel.query("SELECT sum(n) FROM t").unwrap(), 6);
    kernel.close();
}
