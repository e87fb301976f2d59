//! Runs a history: each task runs its operations one after the other, all tasks at the same time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flatwater::stats::Stats;
use flatwater::{Database, Error};

use super::content::{Content, Scope, content, difference};
use super::counters::Counters;
use super::op::{History, Part, Told};
use super::perform::perform;
use super::schema::SCHEMA;
use super::setting::Setting;
use super::ticks::{self, Ticks};
use crate::checks;
use crate::finding::Finding;
use crate::gauge::Gauge;

/// A history that takes longer counts as hung.
const HANGS: Duration = Duration::from_secs(60);

const HANG: &str = "a history did not end within 60 s";

/// The outcome of one operation.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) told: Vec<Told>,
    /// What its task could see afterwards, if the result leaves open what was done.
    pub(super) seen: Option<Content>,
}

/// The outcome of a history.
pub(super) struct Played {
    /// For each task.
    pub(super) outcomes: Vec<Vec<Outcome>>,
    pub(super) ticks: BTreeMap<i64, usize>,
    pub(super) content: Content,
    pub(super) stats: Stats,
}

pub(super) fn is_hang(what: &str) -> bool {
    what.starts_with(HANG)
}

/// Runs the history in a new database.
pub(super) fn play(setting: &Setting, file: &Path, tasks: &History, gauge: &Arc<Gauge>) -> Result<Played, Finding> {
    let played = setting.block_on(async {
        let history = in_time(setting, file, tasks, gauge);
        let late = |_| Err(Finding::new(HANG));
        tokio::time::timeout(HANGS, history).await.unwrap_or_else(late)
    })??;
    if !setting.in_memory {
        checks::is_sound(file)?;
        let plain = rusqlite::Connection::open(file)?;
        let there = content(&plain, Scope::at_the_end(tasks.len()))?;
        if let Some(difference) = difference(&there, &played.content) {
            return Err(Finding::new("the file is not what was read before the close").with_history(difference));
        }
    }
    Ok(played)
}

async fn in_time(setting: &Setting, file: &Path, tasks: &History, gauge: &Arc<Gauge>) -> Result<Played, Finding> {
    let db = setting.options(file).open().await?;
    db.execute_script(SCHEMA).await?;
    let ticks = Ticks::default();
    let noting = ticks.clone();
    db.write_with(move |tx| ticks::add_function(tx, &noting).map_err(Error::from)).await?;
    let counters = Arc::<Counters>::default();
    let running: Vec<_> = tasks
        .iter()
        .enumerate()
        .map(|(at, ops)| {
            let one = task(db.clone(), gauge.clone(), counters.clone(), ops.clone(), Scope::of_task(at, tasks.len()));
            tokio::spawn(one)
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in running {
        outcomes.push(task.await??);
    }
    counters.are_right(&db).await?;
    let scope = Scope::at_the_end(tasks.len());
    let content = db.write_with(move |tx| content(tx, scope).map_err(Error::from)).await?;
    let stats = db.stats();
    db.close().await?;
    Ok(Played { outcomes, ticks: ticks.last(), content, stats })
}

async fn task(
    db: Database,
    gauge: Arc<Gauge>,
    counters: Arc<Counters>,
    ops: Vec<Part>,
    scope: Scope,
) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    for Part { op, .. } in &ops {
        let before = counters.highest(op);
        let told = perform(&db, &gauge, op).await;
        counters.note(op, before, &told);
        let is_open = told.iter().any(Told::is_open);
        // On the writer, so that a write that is still running ends first.
        let look = || db.write_with(move |tx| content(tx, scope).map_err(Error::from));
        let seen = if is_open { Some(look().await?) } else { None };
        outcomes.push(Outcome { told, seen });
    }
    Ok(outcomes)
}
