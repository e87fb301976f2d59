//! What a lane asks of a peer.
//!
//! Owns: the traits a peer implements. A peer that works on the calling thread answers with futures that are ready at
//! their first poll. Leaves out: how each peer does it.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lane::Info;
use crate::record::{Record, Sum, sum_of};
use crate::value::{Rows, Value};

/// What an acknowledged write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// `synchronous = NORMAL`.
    #[default]
    Normal,
    /// `synchronous = FULL`.
    Full,
}

impl Durability {
    /// As a value of the PRAGMA `synchronous`.
    #[must_use]
    pub fn synchronous(self) -> &'static str {
        match self {
            Self::Normal => "NORMAL",
            Self::Full => "FULL",
        }
    }
}

/// Settings that are the same for all peers: WAL, foreign keys on, no mmap, and these. Where temporary data lies and
/// whether a cache spills is up to each library.
pub const CACHE_KIB: usize = 16384;
/// How long to wait for a lock that another connection holds.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Prepared statements kept per connection.
pub const STATEMENT_CACHE: usize = 128;

/// How to open a database.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The peer's name, where one program is several peers.
    pub name: String,
    pub path: PathBuf,
    pub durability: Durability,
}

/// What a peer says of itself.
#[derive(Debug, Clone)]
pub struct About {
    /// The peers this program can be; the first is the one it is if not told.
    pub names: &'static [&'static str],
    /// Library and version.
    pub version: String,
    /// It works on the calling thread only: lanes with tasks are not for it.
    pub one_thread: bool,
}

/// The id, name and value of a row of `t`.
pub type Named = (i64, String, f64);

/// A library in its idiomatic use. A cheap handle, which tasks clone.
pub trait Peer: Clone + Send + Sync + Sized + 'static {
    /// The rows of a query as the library gives them.
    type Table<R: Record>: Table<R> + Send;

    /// A live query as the library has it; [`NoLive`] if it has none.
    type Live: Live;

    /// It has live queries.
    const HAS_LIVE: bool = false;

    /// SQL may call functions of the program.
    const HAS_FUNCTIONS: bool = false;

    /// Thousands of databases may stay open that are used now and then.
    const KEEPS_MANY: bool = false;

    fn about() -> About;

    /// Whether the peer called `name` runs this lane, beyond what the lane's needs tell.
    fn offers(_name: &str, _lane: &Info) -> bool {
        true
    }

    /// The journal mode of the peer called `name`.
    fn journal_mode(_name: &str) -> &'static str {
        "wal"
    }

    fn open(setup: &Setup) -> impl Future<Output = Result<Self>> + Send;

    /// Called when a lane that only reads has its data: a peer that reads inside an open transaction opens it here.
    fn hold(&self) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Creates the SQL function `half`, of one number: deterministic, and short.
    fn create_half(&self) -> impl Future<Output = Result<()>> + Send {
        async { bail!("the peer has no functions") }
    }

    /// One statement; answers how many rows it changed.
    fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> impl Future<Output = Result<u64>> + Send;

    /// One statement for each row, in one transaction.
    fn many(&self, sql: &'static str, rows: &Rows) -> impl Future<Output = Result<u64>> + Send;

    fn query<R: Record>(
        &self,
        sql: &'static str,
        params: &[Value<'_>],
    ) -> impl Future<Output = Result<Self::Table<R>>> + Send;

    /// The rows of a query as the program's own type, by the library's call for that.
    fn query_as(&self, sql: &'static str, params: &[Value<'_>]) -> impl Future<Output = Result<Vec<Named>>> + Send {
        async move { self.query::<Named>(sql, params).await?.into_records() }
    }

    /// The same for columns `id`, `name` and `value`, which are found by their names; answers what touching all of them sums to.
    fn query_named(&self, sql: &'static str) -> impl Future<Output = Result<Sum>> + Send {
        async move { Ok(sum_of(&self.query_as(sql, &[]).await?)) }
    }

    /// The rows of a query one by one, each as the program's own type, by the library's call for that.
    fn stream(&self, sql: &'static str) -> impl Future<Output = Result<Sum>> + Send {
        async move { Ok(sum_of(&self.query_as(sql, &[]).await?)) }
    }

    /// The rows of a query as a JSON array of objects in UTF-8.
    fn json(&self, sql: &'static str) -> impl Future<Output = Result<Vec<u8>>> + Send;

    /// Begins a live query.
    fn live(&self, sql: &'static str, _params: &[Value<'_>]) -> Result<Self::Live> {
        bail!("a library without live queries cannot begin {sql}")
    }

    /// Opens another connection to the database, with plain SQLite.
    fn foreign(&self, path: &Path) -> Result<Foreign> {
        bail!("the peer opens no other connection to {}", path.display())
    }

    /// What the live queries did since the database was opened, as the library counts it.
    fn live_counts(&self) -> LiveCounts {
        LiveCounts::default()
    }

    /// Runs `body` in an immediate transaction, and commits.
    fn transaction<B: Body>(&self, body: B) -> impl Future<Output = Result<B::Answer>> + Send;

    /// The rows of a query for each of these ids, all of one point in time; answers what touching all of them sums to.
    fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> impl Future<Output = Result<Sum>> + Send;

    /// Begins a read, stays in it for so long without doing anything, and ends it: a program's own code while a read is
    /// open. A peer with one connection does nothing else meanwhile.
    fn read_for(&self, lasts: Duration) -> impl Future<Output = Result<()>> + Send;

    /// How much of the WAL is in use, in bytes, if the library tells it: a WAL that started over keeps its length.
    fn wal_in_use(&self) -> Option<u64> {
        None
    }

    /// Closes everything, so that the files are complete.
    fn close(self) -> impl Future<Output = Result<()>> + Send;
}

/// The rows of a query.
pub trait Table<R: Record> {
    /// Consumes them: touches every field of every row.
    fn touch(&self) -> Sum;

    /// The rows as records, for checks.
    fn records(&self) -> Result<Vec<R>>;

    /// The same, with nothing left behind.
    fn into_records(self) -> Result<Vec<R>>
    where
        Self: Sized,
    {
        self.records()
    }
}

/// A library that answers rows as the program's own types.
impl<R: Record> Table<R> for Vec<R> {
    fn touch(&self) -> Sum {
        sum_of(self)
    }

    fn records(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn into_records(self) -> Result<Self> {
        Ok(self)
    }
}

/// A live query: the query's result, and again whenever it changed.
pub trait Live: Send + 'static {
    /// What the library delivers.
    type Given: Send;

    /// Awaits the next result. The end of the results is an error.
    fn take(&mut self) -> impl Future<Output = Result<Self::Given>> + Send;

    /// Touches every field of a result, or of the rows in which it differs from the one before.
    fn touch(given: &Self::Given) -> Sum;

    /// Makes it deliver differences: the whole result first, and then the rows that came, changed or went.
    fn changes(self) -> Self;

    /// Awaits the next result, and touches it.
    fn next(&mut self) -> impl Future<Output = Result<Sum>> + Send {
        async { Ok(Self::touch(&self.take().await?)) }
    }
}

/// The live query of a library that has none: there is no value of it.
#[derive(Debug)]
pub enum NoLive {}

impl Live for NoLive {
    type Given = Self;

    async fn take(&mut self) -> Result<Self> {
        match *self {}
    }

    fn touch(given: &Self) -> Sum {
        match *given {}
    }

    fn changes(self) -> Self {
        self
    }
}

/// Runs one statement on another connection, which is not the library's, and commits.
pub type Foreign = Box<dyn FnMut(&str) -> Result<()> + Send>;

/// What a library counts of its live queries.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveCounts {
    /// How often a live query ran, the first runs included.
    pub runs: u64,
    /// How many of them had the result of the run before.
    pub unchanged: u64,
    /// Live queries that run at the moment, or wait for that.
    pub pending: usize,
    /// The time from a commit until its result was there for the tasks that wait: median and 99th percentile.
    pub lag_p50_us: u64,
    pub lag_p99_us: u64,
}

/// What runs in a transaction. A type instead of a closure, so that it is written once for peers whose transactions
/// are closures on another thread and for those that await between statements.
pub trait Body: Send + 'static {
    type Answer: Send + 'static;

    fn run<T: Transaction>(self, transaction: &mut T) -> impl Future<Output = Result<Self::Answer>> + Send;
}

/// A [`Body`] that runs in a savepoint and so cannot take its parent along.
pub trait Step: Send {
    fn run<T: Transaction>(self, transaction: &mut T) -> impl Future<Output = Result<()>> + Send;
}

/// An open transaction or savepoint.
pub trait Transaction: Send {
    fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> impl Future<Output = Result<u64>> + Send;

    fn many(&mut self, sql: &'static str, rows: &Rows) -> impl Future<Output = Result<u64>> + Send;

    /// All rows, touched.
    fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>])
    -> impl Future<Output = Result<Sum>> + Send;

    /// The first value of the first row.
    fn integer(&mut self, sql: &'static str) -> impl Future<Output = Result<i64>> + Send;

    /// Runs a step in a savepoint and keeps what it did.
    fn savepoint<S: Step>(&mut self, step: S) -> impl Future<Output = Result<()>> + Send;
}
