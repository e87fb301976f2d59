//! long_queries: the longest poll while calls are awaited that must not run on the caller's thread.
//!
//! One caller on a current-thread runtime, each poll timed, as in `caller_polls`. `KIND_longest_poll_us` and
//! `KIND_longest_poll_cpu_us` are those of: `aggregate`, a sum that takes about 500 ms; `grown`, the same after its text
//! has been short 200 times; `count`, a `count(*)` over a million rows; `sort`, the middle of these rows; `search`, an FTS5
//! query; `open`, a read that the program's own code keeps open for 500 ms. The sample is one call.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::lane::{Lane, Trial};
use crate::measure::{Measured, Timing};
use crate::peer::{Peer, Table};
use crate::polls::Polls;
use crate::value::Value;

const NUMBERS: &str = "CREATE TABLE numbers (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)";
/// `n` is different in each row, for the modulus is a prime above their number.
const FILL_NUMBERS: &str = "INSERT INTO numbers \
     WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?) SELECT i, i * 7919 % 1000003 FROM i";
const TEXTS: &str = "CREATE VIRTUAL TABLE texts USING fts5 (body)";
const FILL_TEXTS: &str = "INSERT INTO texts (rowid, body) \
     SELECT id, 'word' || (id % 997) || ' note' || (id % 991) FROM numbers WHERE id <= ?";

const AGGREGATE: &str =
    "WITH RECURSIVE i (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?) SELECT sum(i) FROM i";
const GROWN: &str = "WITH RECURSIVE g (g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM g WHERE g < ?) SELECT sum(g) FROM g";
const COUNT: &str = "SELECT count(*) FROM numbers";
const SORT: &str = "SELECT n FROM numbers ORDER BY n LIMIT 1 OFFSET ?";
const SEARCH: &str = "SELECT count(*) FROM texts WHERE texts MATCH 'word1* OR note2*'";

const SHORT_FIRST: usize = 200;

pub(super) fn lanes<P: Peer>() -> Vec<Lane> {
    let about = "longest poll while long queries are awaited: aggregates, a count, a sort, a search";
    vec![Lane::new("process", "long_queries", about, "calls", run::<P>).current_thread(true)]
}

async fn run<P: Peer>(trial: Trial) -> Result<Measured> {
    let peer = trial.open::<P>().await?;
    let sizes = Sizes::of(&trial)?;
    fill(&peer, &sizes).await?;
    let queries = queries(&sizes);
    let open = Duration::from_millis(trial.size(500, 5) as u64);
    let (mut kinds, mut held) = (vec![Polls::default(); queries.len()], Polls::default());
    for _ in 0..SHORT_FIRST {
        expect(&peer, (GROWN, Some(1), 1), &mut Polls::default()).await?;
    }
    let mut timing = Timing::begin()?;
    for _ in 0..trial.size(3, 1) {
        for ((_, query), polls) in queries.iter().zip(&mut kinds) {
            timing.time(expect(&peer, *query, polls)).await?;
        }
        timing.time(held.time(peer.read_for(open))).await?;
    }
    let calls = timing.latencies.len();
    let mut measured = timing.end(calls)?;
    held.report_longest("open", &mut measured);
    for ((kind, _), polls) in queries.iter().zip(&kinds) {
        polls.report_longest(kind, &mut measured);
        held.merge(polls);
    }
    held.report(&mut measured).await?;
    peer.close().await?;
    Ok(measured)
}

struct Sizes {
    summed: i64,
    numbers: i64,
    texts: i64,
}

impl Sizes {
    fn of(trial: &Trial) -> Result<Self> {
        let size = |full, quick| i64::try_from(trial.size(full, quick));
        Ok(Self { summed: size(4_500_000, 20_000)?, numbers: size(1_000_000, 5_000)?, texts: size(200_000, 2_000)? })
    }
}

async fn fill<P: Peer>(peer: &P, sizes: &Sizes) -> Result<()> {
    peer.execute(NUMBERS, &[]).await?;
    peer.execute(FILL_NUMBERS, &[sizes.numbers.into()]).await?;
    peer.execute(TEXTS, &[]).await?;
    peer.execute(FILL_TEXTS, &[sizes.texts.into()]).await?;
    Ok(())
}

/// A text, its parameter, and the one number it answers.
type Query = (&'static str, Option<i64>, i64);

fn queries(sizes: &Sizes) -> Vec<(&'static str, Query)> {
    let sum = sizes.summed * (sizes.summed + 1) / 2;
    let mut sorted: Vec<i64> = (1..=sizes.numbers).map(|id| id * 7919 % 1_000_003).collect();
    sorted.sort_unstable();
    let middle = sizes.numbers / 2;
    let matches = |id: &i64| (id % 997).to_string().starts_with('1') || (id % 991).to_string().starts_with('2');
    vec![
        ("aggregate", (AGGREGATE, Some(sizes.summed), sum)),
        ("grown", (GROWN, Some(sizes.summed), sum)),
        ("count", (COUNT, None, sizes.numbers)),
        ("sort", (SORT, Some(middle), sorted[middle as usize])),
        ("search", (SEARCH, None, (1..=sizes.texts).filter(matches).count() as i64)),
    ]
}

async fn expect<P: Peer>(peer: &P, (sql, param, expected): Query, polls: &mut Polls) -> Result<()> {
    let params: Vec<Value<'_>> = param.into_iter().map(Value::from).collect();
    let found = polls.time(peer.query::<(i64,)>(sql, &params)).await?.records()?;
    ensure!(found == [(expected,)], "{sql} answered {found:?}, expected {expected}");
    Ok(())
}
