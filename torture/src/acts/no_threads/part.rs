//! The part: the process in which starts of threads fail. It runs one case and tells what it did and found.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flatwater::Options;
use flatwater::options::{Checkpoint, CheckpointLimits, Inline};
use tokio::task::LocalSet;

use super::case::Case;
use super::load::Open;
use super::places::Places;
use super::watch::Watch;
use super::work::{Work, within};
use crate::finding::Finding;
use crate::leftovers::Belongings;
use crate::round::Told;
use crate::{checks, faults, writes};

static PANICS: AtomicU64 = AtomicU64::new(0);

pub(super) fn run(args: &[String]) -> ExitCode {
    let [case, directory] = args else { return ExitCode::from(2) };
    let Ok(case) = serde_json::from_str::<Case>(case) else { return ExitCode::from(2) };
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        usual(panic);
    }));
    let work = Work::new(Path::new(directory).to_owned());
    let ended = with_runtime(&case, &work).and_then(|()| match PANICS.load(Ordering::SeqCst) {
        0 => Ok(()),
        panics => Err(Finding::new(format!("{panics} panics"))),
    });
    Told { counts: work.counts.take(), finding: ended.err(), ..Told::default() }.tell();
    // A call that hangs must not keep the process.
    std::process::exit(0)
}

/// The runtime starts no threads of its own.
fn with_runtime(case: &Case, work: &Work) -> Result<(), Finding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    LocalSet::new().block_on(&runtime, all(case, work))
}

async fn all(case: &Case, work: &Work) -> Result<(), Finding> {
    faults::disarm()?;
    let options = options(case, &work.directory);
    if case.has_timer {
        let first = Options::new(":memory:").open().await?;
        first.with_timeout(Duration::from_secs(1)).execute_script("SELECT 1").await?;
        first.close().await?;
    }
    let before = Belongings::now();
    let places = if case.takes_places { Some(Places::take().await?) } else { None };
    let open = if case.while_opening && !case.in_memory {
        writes::with_table(&work.directory.join("main.db"))?;
        None
    } else {
        let db = within("open", options.clone().open()).await??;
        work.schema(&db).await?;
        let watch = Watch::begin(&db);
        Some(Open { db, watch })
    };
    faults::arm(&case.order())?;
    work.is_calm.set(false);
    let open = work.load(case, &options, open).await;
    faults::disarm()?;
    work.count("thread starts that failed", faults::met()?);
    work.is_calm.set(true);
    work.goes_on(&options, open?).await?;
    if !case.in_memory {
        is_as_answered(work)?;
        work.opens_again(&options).await?;
        is_as_answered(work)?;
    }
    if let Some(places) = places {
        places.give_back().await?;
    }
    if case.has_timer { before.are_back() } else { Ok(()) }
}

/// Checks the closed file with plain SQLite.
fn is_as_answered(work: &Work) -> Result<(), Finding> {
    let path = work.directory.join("main.db");
    if work.directory.join("main.db-wal").exists() {
        return Err(Finding::new("the last close left a WAL"));
    }
    checks::is_sound(&path)?;
    work.ledger.agrees_with(&writes::rows(&path)?)
}

/// Small limits, so that the checkpointer, which has a thread too, has work.
fn options(case: &Case, directory: &Path) -> Options {
    let path = if case.in_memory { Path::new(":memory:").to_owned() } else { directory.join("main.db") };
    let limits = CheckpointLimits::default().limit_bytes(256 << 10).hard_limit_bytes(1 << 20);
    let options = Options::new(path)
        .readers(case.readers)
        .tuning(|t| t.close_wait(Duration::from_secs(20)))
        .checkpoint(Checkpoint::Managed(limits));
    if case.never_inline { options.tuning(|t| t.inline(Inline::Never)) } else { options }
}
