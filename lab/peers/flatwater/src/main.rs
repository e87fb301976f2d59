//! The peer `flatwater`: its public API with its defaults, from this working tree; and variants that tell what one
//! default is worth: `flatwater-no-checkpoints` (checkpoints left to others, and nobody runs one),
//! `flatwater-never-inline` (every call on a worker's thread) and `flatwater-no-leases`; and with the feature
//! `encrypted` the peer `flatwater-encrypted`, with a raw key.
//!
//! Rows are read in place from the block that a query answers. Leaves out: options that are not the defaults, besides
//! durability and those of the variants.

use std::marker::PhantomData;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use flatwater::bindings::Internals as _;
use flatwater::live::{Change, LiveRows, RowChanges};
use flatwater::options::{Checkpoint, Inline, Key};
use flatwater::rusqlite::types::{ToSqlOutput, ValueRef};
use flatwater::{Database, FromRow, Options, Params, ToSql};
use lab_kit::lane::Info;
use lab_kit::{
    About, Body, Cells, Durability, Foreign, Live, LiveCounts, Named, Peer, Record, Result, Rows, Setup, Step, Sum,
    Table, Transaction, Value, anyhow, version_in,
};

const NO_CHECKPOINTS: &str = "flatwater-no-checkpoints";
const NEVER_INLINE: &str = "flatwater-never-inline";
const NO_LEASES: &str = "flatwater-no-leases";
const ENCRYPTED: &str = "flatwater-encrypted";

/// A frame of the WAL, with the default page size.
const FRAME_BYTES: u64 = 24 + 4096;

#[derive(Clone)]
struct Flatwater(Database);

/// The options of the peer called `setup.name`; each variant differs from the defaults in one.
fn options(setup: &Setup) -> Options {
    let durability = match setup.durability {
        Durability::Normal => flatwater::options::Durability::Normal,
        Durability::Full => flatwater::options::Durability::Full,
    };
    let options = Options::new(&setup.path).durability(durability);
    match setup.name.as_str() {
        NO_CHECKPOINTS => options.checkpoint(Checkpoint::External),
        NEVER_INLINE => options.tuning(|t| t.inline(Inline::Never)),
        NO_LEASES => options.tuning(|t| t.leases(false)),
        ENCRYPTED => options.key(Key::raw(&[0x2a; 32])),
        _ => options,
    }
}

/// Writes rows as a program does that knows how many values they have: as arrays, which are not allocated. The lanes have
/// rows of 2, 6 and 20 values.
macro_rules! execute_many {
    ($target:expr, $sql:expr, $rows:expr) => {
        match $rows.first().map_or(0, Vec::len) {
            2 => $target.execute_many($sql, arrays::<2>($rows)).await?,
            6 => $target.execute_many($sql, arrays::<6>($rows)).await?,
            20 => $target.execute_many($sql, arrays::<20>($rows)).await?,
            _ => $target.execute_many($sql, $rows.iter().map(|row| row.iter().map(Bound).collect::<Vec<_>>())).await?,
        }
    };
}

fn arrays<const VALUES: usize>(rows: &Rows) -> impl Iterator<Item = [Bound<'_>; VALUES]> {
    rows.iter().map(|row| std::array::from_fn(|at| Bound(&row[at])))
}

impl Peer for Flatwater {
    type Table<R: Record> = Block<R>;
    type Live = Delivered;

    const HAS_LIVE: bool = true;
    const HAS_FUNCTIONS: bool = true;
    const KEEPS_MANY: bool = true;

    fn about() -> About {
        let version = version_in(include_str!("../Cargo.lock"), "flatwater");
        About { names: &["flatwater", NO_CHECKPOINTS, NEVER_INLINE, NO_LEASES, ENCRYPTED], version, one_thread: false }
    }

    /// A variant runs the lanes in which its option tells something.
    fn offers(name: &str, lane: &Info) -> bool {
        match name {
            NO_CHECKPOINTS => ["insert_sequential", "insert_concurrent_100_10s", "burst_8k"].contains(&&*lane.name),
            NEVER_INLINE => {
                let families = ["insert_", "point_query", "random_keys", "noop_select", "transaction", "caller_"];
                families.iter().any(|family| lane.name.starts_with(family))
            }
            ENCRYPTED => cfg!(feature = "encrypted") && ["point_query", "insert_sequential"].contains(&&*lane.name),
            NO_LEASES => ["point_query", "point_query_writing", "noop_select", "chat"].contains(&&*lane.name),
            _ => true,
        }
    }

    async fn open(setup: &Setup) -> Result<Self> {
        Ok(Self(options(setup).open().await?))
    }

    async fn create_half(&self) -> Result<()> {
        Ok(self.0.functions().create_short_function("half", 1, |context| Ok(context.get::<f64>(0)? / 2.0))?)
    }

    async fn execute(&self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        Ok(self.0.execute(sql, bound(params)).await?.changes)
    }

    async fn many(&self, sql: &'static str, rows: &Rows) -> Result<u64> {
        Ok(execute_many!(self.0, sql, rows))
    }

    async fn query<R: Record>(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Block<R>> {
        Ok(Block(self.0.query(sql, bound(params)).await?, PhantomData))
    }

    async fn query_as(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Named>> {
        Ok(self.0.query_as(sql, bound(params)).await?)
    }

    async fn query_named(&self, sql: &'static str) -> Result<Sum> {
        let rows: Vec<ById> = self.0.query_as(sql, ()).await?;
        let mut sum = Sum { rows: rows.len() as u64, cells: 0 };
        for ById { id, name, value } in &rows {
            sum.add(&Value::Integer(*id));
            sum.add(&name.as_str().into());
            sum.add(&Value::Real(*value));
        }
        Ok(sum)
    }

    async fn stream(&self, sql: &'static str) -> Result<Sum> {
        let mut rows = self.0.stream_as::<Named>(sql, ());
        let mut sum = Sum::default();
        while let Some(row) = rows.next().await {
            row?.touch(&mut sum);
        }
        Ok(sum)
    }

    async fn json(&self, sql: &'static str) -> Result<Vec<u8>> {
        Ok(self.0.query_json(sql, ()).await?.into_bytes())
    }

    fn live(&self, sql: &'static str, params: &[Value<'_>]) -> Result<Delivered> {
        Ok(Delivered::All(self.0.live(sql, bound(params))))
    }

    fn foreign(&self, path: &Path) -> Result<Foreign> {
        let plain = flatwater::rusqlite::Connection::open(path)?;
        plain.execute_batch("PRAGMA synchronous = normal")?;
        Ok(Box::new(move |sql| Ok(plain.execute_batch(sql)?)))
    }

    fn live_counts(&self) -> LiveCounts {
        let live = self.0.stats().live;
        LiveCounts {
            runs: live.runs,
            unchanged: live.unchanged,
            pending: live.pending,
            lag_p50_us: live.lag_p50_us,
            lag_p99_us: live.lag_p99_us,
        }
    }

    async fn transaction<B: Body>(&self, body: B) -> Result<B::Answer> {
        let mut open = Open(self.0.begin().await?);
        // An error drops the transaction, which rolls back.
        let answer = body.run(&mut open).await?;
        open.0.commit().await?;
        Ok(answer)
    }

    async fn snapshot<R: Record>(&self, sql: &'static str, ids: [i64; 3]) -> Result<Sum> {
        let snapshot = self.0.snapshot().await?;
        let mut sum = Sum::default();
        for id in ids {
            sum += touched(&snapshot.query(sql, (id,)).await?, R::COLUMNS);
        }
        Ok(sum)
    }

    async fn read_for(&self, lasts: Duration) -> Result<()> {
        self.0
            .read_with(move |connection| {
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
                thread::sleep(lasts);
                Ok(())
            })
            .await
    }

    fn wal_in_use(&self) -> Option<u64> {
        Some(u64::from(self.0.stats().wal.frames) * FRAME_BYTES)
    }

    async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

/// A row whose columns are found by their names.
#[derive(FromRow)]
struct ById {
    id: i64,
    name: String,
    value: f64,
}

struct Open<'a>(flatwater::Transaction<'a>);

impl Transaction for Open<'_> {
    async fn execute(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<u64> {
        Ok(self.0.execute(sql, bound(params)).await?.changes)
    }

    async fn many(&mut self, sql: &'static str, rows: &Rows) -> Result<u64> {
        Ok(execute_many!(self.0, sql, rows))
    }

    async fn query<R: Record>(&mut self, sql: &'static str, params: &[Value<'_>]) -> Result<Sum> {
        Ok(Block::<R>(self.0.query(sql, bound(params)).await?, PhantomData).touch())
    }

    async fn integer(&mut self, sql: &'static str) -> Result<i64> {
        self.0.query_optional_value(sql, ()).await?.ok_or_else(|| anyhow!("{sql} answered no row"))
    }

    async fn savepoint<S: Step>(&mut self, step: S) -> Result<()> {
        let mut nested = Open(self.0.begin().await?);
        step.run(&mut nested).await?;
        Ok(nested.0.commit().await?)
    }
}

/// The rows of a query, as the library answers them.
struct Block<R>(flatwater::Rows, PhantomData<fn() -> R>);

impl<R: Record> Table<R> for Block<R> {
    fn touch(&self) -> Sum {
        touched(&self.0, R::COLUMNS)
    }

    fn records(&self) -> Result<Vec<R>> {
        self.0.iter().map(|row| R::read(&RowCells(row))).collect()
    }
}

/// The results of a live query, as the library delivers them.
enum Delivered {
    All(flatwater::Live),
    Changes(flatwater::Live<flatwater::live::Change>),
}

/// One of them.
enum Given {
    All(LiveRows),
    Rows(RowChanges),
}

impl Live for Delivered {
    type Given = Given;

    async fn take(&mut self) -> Result<Given> {
        let is_over = || anyhow!("the live query is over");
        Ok(match self {
            Self::All(live) => Given::All(live.next().await.ok_or_else(is_over)??),
            Self::Changes(changes) => match changes.next().await.ok_or_else(is_over)?? {
                Change::Full(rows) => Given::All(rows),
                Change::Rows(rows) => Given::Rows(rows),
            },
        })
    }

    fn touch(given: &Given) -> Sum {
        match given {
            Given::All(rows) => touched(rows, rows.columns().len()),
            Given::Rows(rows) => {
                let changed = rows.inserted().len() + rows.deleted().len() + rows.updated().len();
                let mut sum = Sum { rows: changed as u64, cells: 0 };
                let updated = rows.updated().flat_map(|row| [row.old, row.new]);
                for row in rows.inserted().chain(rows.deleted()).chain(updated) {
                    row.values().for_each(|value| sum.add(&shown(value)));
                }
                sum
            }
        }
    }

    fn changes(self) -> Self {
        match self {
            Self::All(live) => Self::Changes(live.changes()),
            Self::Changes(_) => self,
        }
    }
}

fn touched(rows: &flatwater::Rows, columns: usize) -> Sum {
    let mut sum = Sum { rows: rows.len() as u64, cells: 0 };
    for row in rows.iter() {
        for at in 0..columns {
            sum.add(&row.value(at).map_or(Value::Null, shown));
        }
    }
    sum
}

struct RowCells<'a>(flatwater::Row<'a>);

impl Cells for RowCells<'_> {
    fn cell(&self, at: usize) -> Result<Value<'_>> {
        Ok(shown(self.0.value(at)?))
    }
}

fn shown(value: ValueRef<'_>) -> Value<'_> {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => str::from_utf8(text).map_or(Value::Null, Value::from),
        ValueRef::Blob(bytes) => bytes.into(),
    }
}

struct Bound<'a>(&'a Value<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> flatwater::rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn bound(params: &[Value<'_>]) -> flatwater::Result<Params> {
    Params::positional(params.iter().map(Bound))
}

fn main() -> ExitCode {
    lab_kit::main::<Flatwater>()
}
