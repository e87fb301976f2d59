//! What a lane is.
//!
//! Owns: a lane's description, what it needs of a peer, and the trial it is given to run in. Leaves out: the lanes.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::measure::Measured;
use crate::peer::{About, Durability, Peer, Setup, Table};

/// Whether a lane stands first on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tag {
    Release,
    Focused,
}

/// The pace of a lane: a share of what the floor reaches in another lane, in operations a second. The tool measures that
/// lane first, on the same machine, and hands the rate to each trial.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pace {
    pub of: &'static str,
    pub share: f64,
}

/// A lane's description, as `--list` prints it.
#[derive(Debug, Clone, Serialize)]
pub struct Info {
    pub name: String,
    pub about: String,
    pub tag: Tag,
    pub group: &'static str,
    pub ops_unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Several tasks call the peer at once.
    #[serde(skip)]
    pub tasks: bool,
    /// Nothing is written in its timed part.
    #[serde(skip)]
    pub reads_only: bool,
    #[serde(skip)]
    pub current_thread: bool,
}

impl Info {
    /// A focused lane with one call after another, at no pace.
    pub fn focused(
        group: &'static str,
        name: impl Into<String>,
        about: impl Into<String>,
        ops_unit: &'static str,
    ) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            tag: Tag::Focused,
            group,
            ops_unit,
            pace: None,
            tasks: false,
            reads_only: false,
            current_thread: false,
        }
    }
}

type Running = Pin<Box<dyn Future<Output = Result<Measured>> + Send>>;

/// A workload and how it is run.
pub struct Lane {
    pub info: Info,
    run: Box<dyn FnOnce(Trial) -> Running>,
}

impl Lane {
    /// A focused lane that awaits one call after another on a runtime with two threads.
    pub fn new<F>(
        group: &'static str,
        name: impl Into<String>,
        about: impl Into<String>,
        ops_unit: &'static str,
        run: impl FnOnce(Trial) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Measured>> + Send + 'static,
    {
        Self { info: Info::focused(group, name, about, ops_unit), run: Box::new(move |trial| Box::pin(run(trial))) }
    }

    pub fn release(mut self) -> Self {
        self.info.tag = Tag::Release;
        self
    }

    pub fn tasks(mut self) -> Self {
        self.info.tasks = true;
        self
    }

    pub fn reads_only(mut self) -> Self {
        self.info.reads_only = true;
        self
    }

    /// Paced by this share of what the floor reaches in the lane `of`.
    pub fn paced(mut self, of: &'static str, share: f64) -> Self {
        self.info.pace = Some(Pace { of, share });
        self
    }

    pub fn current_thread(mut self, yes: bool) -> Self {
        self.info.current_thread = yes;
        self
    }

    /// Runs it on the runtime it asks for, as a task, which is where a server's code lives.
    pub(crate) fn run(self, about: &About, trial: Trial) -> Result<Measured> {
        let runtime = if about.one_thread || self.info.current_thread {
            tokio::runtime::Builder::new_current_thread().enable_all().build()
        } else {
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
        };
        let runtime = runtime.context("the runtime cannot be started")?;
        runtime.block_on(async { tokio::spawn((self.run)(trial)).await.context("the lane panicked")? })
    }
}

/// One run of one lane.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The peer's name.
    pub peer: String,
    pub dir: PathBuf,
    pub quick: bool,
    /// How many operations a second a paced lane begins.
    pub per_second: Option<f64>,
}

impl Trial {
    /// A number of operations: the full one, or that of the quick form.
    #[must_use]
    pub fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// The time from one operation of a paced lane to the next.
    pub fn pace(&self) -> Result<Duration> {
        let per_second = self.per_second.context("the lane is paced by the floor: give --per-second")?;
        ensure!(per_second.is_finite() && per_second > 0.0, "{per_second} operations a second are no pace");
        Ok(Duration::from_secs_f64(1.0 / per_second))
    }

    /// Opens the peer on a fresh database.
    pub async fn open<P: Peer>(&self) -> Result<P> {
        self.open_with(Durability::Normal).await
    }

    pub async fn open_with<P: Peer>(&self, durability: Durability) -> Result<P> {
        let path = self.database();
        let peer = P::open(&Setup { name: self.peer.clone(), path, durability }).await?;
        let (mode, expected) =
            (peer.query::<(String,)>("PRAGMA journal_mode", &[]).await?, P::journal_mode(&self.peer));
        let mode = mode.records()?;
        ensure!(mode == [(expected.to_owned(),)], "the peer's journal mode is {mode:?} and not {expected}");
        Ok(peer)
    }

    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.dir.join("lab.db")
    }

    #[must_use]
    pub fn wal(&self) -> PathBuf {
        self.dir.join("lab.db-wal")
    }

    pub(crate) fn new(peer: &str, dir: &Path, quick: bool, per_second: Option<f64>) -> Self {
        Self { peer: peer.to_owned(), dir: dir.to_owned(), quick, per_second }
    }
}

/// Runs `work` beside the lane: as a task, or for a peer that works on the calling thread on a thread of its own.
pub fn beside<P: Peer, T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> tokio::task::JoinHandle<Result<T>> {
    if P::about().one_thread { on_a_thread(work) } else { tokio::spawn(work) }
}

/// Runs `work` on a thread of its own, which may block.
pub fn on_a_thread<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> tokio::task::JoinHandle<Result<T>> {
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(work))
}
