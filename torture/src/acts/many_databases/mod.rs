//! Act: hundreds to thousands of open databases, of which a few may have connections.
//!
//! Owns: a round. Hundreds of tasks use databases at random, while another process writes to some of them; the descriptors
//! of this process are counted all the time. `bases.rs` has the databases and what they must contain, `calls.rs` the
//! tasks, `watch.rs` the live queries, `foreign.rs` the other process, `descriptors.rs` the count.

mod bases;
mod calls;
mod descriptors;
mod foreign;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Act;
use crate::finding::Finding;
use crate::round::Round;
use bases::{Bases, Setting};
use calls::Task;
use descriptors::Sampler;
use foreign::Foreign;
use watch::Watch;

pub(crate) const ACT: Act = Act {
    name: "many-databases",
    about: "thousands of open databases in random use; few descriptors, no call fails, nothing is left after a shutdown",
    round,
    parts: &[(FOREIGN, foreign::part)],
};

const FOREIGN: &str = "many-foreign";
/// How long `shutdown` may wait, and how much later it must have answered on a busy machine.
const SHUTDOWN: Duration = Duration::from_secs(20);
const LATE: Duration = Duration::from_secs(10);
/// What no round may be without.
const NEVER_ZERO: [&str; 8] =
    ["acknowledged writes", "closes", "dropped calls", "foreign writes", "live results", "reads", "streams", "parked"];

fn round(round: &mut Round) -> Result<(), Finding> {
    let setting = setting(&mut round.rng)?;
    let bases = Arc::new(Bases::make(round.directory(), setting)?);
    let sampler = Sampler::start(setting.most_descriptors());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let foreign = Foreign::start(&bases, round.rng.random())?;
    let worked = runtime.block_on(works(&bases, round.until, foreign, &mut round.rng));
    // The tasks of a finding may hang.
    runtime.shutdown_background();
    round.counts.merge(&bases.counts());
    let sampled = sampler.stop(&setting);
    round.counts.add("databases", setting.databases as u64);
    let wrote = worked?;
    let most = sampled?;
    round.counts.add("descriptors at most", most as u64);
    round.counts.add("foreign writes", wrote.len() as u64);
    bases.audit(&wrote)?;
    for what in NEVER_ZERO {
        if round.counts.0.get(what).is_none_or(|count| *count == 0) {
            return Err(Finding::new(format!("a round without {what}")));
        }
    }
    Ok(())
}

/// Runs all tasks until the time is over, then waits for the live queries, and closes everything. Returns what the other
/// process wrote.
async fn works(
    bases: &Arc<Bases>,
    until: Instant,
    foreign: Foreign,
    rng: &mut StdRng,
) -> Result<Vec<(usize, i64)>, Finding> {
    let watch = Watch::begin(bases).await?;
    let task = |seed| {
        let mut task = Task { bases: bases.clone(), rng: StdRng::seed_from_u64(seed) };
        tokio::spawn(async move { task.run(until).await })
    };
    let tasks: Vec<_> = (0..bases.setting.tasks).map(|_| task(rng.random())).collect();
    for done in try_join_all(tasks).await? {
        done?;
    }
    let wrote = foreign.stop().await?;
    watch.arrives(bases).await?;
    bases.note_parked().await;
    let began = Instant::now();
    flatwater::process::close_all(SHUTDOWN)
        .await
        .map_err(|error| Finding::new(format!("the shutdown fails: {error}")))?;
    if began.elapsed() > SHUTDOWN + LATE {
        return Err(Finding::new(format!("a shutdown of idle databases takes {} s", began.elapsed().as_secs())));
    }
    watch.ends().await?;
    Ok(wrote)
}

/// Returns the setting of a round. The limit of descriptors of this process is raised as far as it may be.
fn setting(rng: &mut StdRng) -> Result<Setting, Finding> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    let max_open = rng.random_range(8..=64);
    // Sometimes more databases have a live query than may have connections.
    let watched =
        if rng.random_bool(0.5) { rng.random_range(1..=max_open / 2) } else { rng.random_range(1..=3 * max_open) };
    Ok(Setting {
        databases: rng.random_range(400..=2000),
        max_open,
        watched,
        tasks: rng.random_range(100..=300),
        never_inline: rng.random_bool(0.3),
    })
}
