//! Result files: a run writes them, and all other commands read them.
//!
//! Owns: the format and its number, reading with clear errors, and writing so that a kill leaves either the old or the
//! new file. Leaves out: the origin and the meaning of the figures.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::figures::floor::Pace;
use crate::figures::machine::Machine;
use crate::figures::metric::OPS_PER_SECOND;

/// The name of the base in result rows.
pub const BASE: &str = "base";
/// The name of the candidate in result rows.
pub const CANDIDATE: &str = "candidate";

/// The number of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// One file: the circumstances, and a row per trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The format's number, [`FORMAT`].
    pub format: u32,
    /// Identifies this measurement. Rows with equal ids were measured alternately and may be paired.
    pub id: String,
    /// The start time, in RFC 3339 format.
    pub started: String,
    /// The command: `run` or `ab`.
    pub kind: Kind,
    /// The machine that measured.
    pub machine: Machine,
    /// The versions that the peers reported, by peer.
    pub versions: BTreeMap<String, Version>,
    /// How the peers were built.
    pub flags: Flags,
    /// The commit of the working tree.
    pub commit: Option<String>,
    /// Whether the working tree had changes.
    pub dirty: bool,
    /// Whether the run ended before its plan was complete.
    pub partial: bool,
    /// Whether the lanes ran in their small form.
    pub quick: bool,
    /// The planned number of runs per side.
    pub runs: u32,
    /// Lanes that the change cannot affect, as given to `ab`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<String>,
    /// Notes for the reader of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The paces of paced lanes, by lane.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paces: BTreeMap<String, Pace>,
    /// The descriptions of the lanes, by name.
    pub lanes: BTreeMap<String, Lane>,
    /// One row per trial, in the order in which they ended.
    pub results: Vec<Row>,
}

/// The command that wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A comparison of several peers.
    Run,
    /// A comparison of two revisions.
    Ab,
}

/// The versions that a peer reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    /// The library and its version.
    pub version: String,
    /// SQLite's version.
    pub sqlite: String,
    /// SQLite's compile options; a record keeps them apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compile_options: Vec<String>,
    /// The programming language that calls SQLite.
    pub language: String,
    /// The commit it was built from, in an `ab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
}

/// How the peers were compiled that are compiled here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flags {
    /// The version of the compiler.
    pub rustc: String,
    /// SQLite's build flags in the workspace.
    pub sqlite_flags: String,
}

/// The description of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lane {
    /// A description in one line.
    pub about: String,
    /// `release` or `focused`.
    pub tag: String,
    /// The lane's group.
    pub group: String,
    /// The unit of the operations that are counted.
    pub ops_unit: String,
}

/// The result of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The lane.
    pub lane: String,
    /// The peer, or the side in an `ab`.
    pub peer: String,
    /// The run's number, from 0. Trials of the same lane and run were measured one after the other.
    pub run: u32,
    /// The position among the trials of its lane and run, from 0.
    pub order: u32,
    /// The commit, in an `ab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The figures, or the error.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// The trial failed.
    Failed {
        /// The reason, as text.
        error: String,
    },
    /// The trial was measured.
    Measured(Box<Figures>),
}

/// The figures of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The number of operations.
    pub ops: u64,
    /// Wall time of the timed part.
    pub seconds: f64,
    /// Median latency.
    pub p50_us: f64,
    /// The 90th percentile of latency.
    pub p90_us: f64,
    /// The 95th percentile of latency.
    pub p95_us: f64,
    /// The 99th percentile of latency.
    pub p99_us: f64,
    /// The 99.9th percentile of latency.
    pub p999_us: f64,
    /// The highest latency.
    pub max_us: f64,
    /// The median latency minus that of an operation that does nothing.
    pub work_us: Option<f64>,
    /// CPU time of the process during the timed part.
    pub cpu_seconds: Option<f64>,
    /// The peak memory of the process.
    pub peak_rss_bytes: Option<f64>,
    /// Figures that only this lane has.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Figures {
    /// Returns every number by name, including the rate and those in `extra`.
    pub fn numbers(&self) -> Vec<(String, f64)> {
        let own = [
            (OPS_PER_SECOND, Some(self.ops as f64 / self.seconds)),
            ("p50_us", Some(self.p50_us)),
            ("p90_us", Some(self.p90_us)),
            ("p95_us", Some(self.p95_us)),
            ("p99_us", Some(self.p99_us)),
            ("p999_us", Some(self.p999_us)),
            ("max_us", Some(self.max_us)),
            ("work_us", self.work_us),
            ("cpu_seconds", self.cpu_seconds),
            ("peak_rss_bytes", self.peak_rss_bytes),
        ];
        let own = own.into_iter().filter_map(|(name, number)| Some((name.to_owned(), number?)));
        own.chain(self.extra.iter().filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)))).collect()
    }

    /// Returns the number of that name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers().into_iter().find(|(known, _)| known == name).map(|(_, number)| number)
    }

    /// Returns why these figures cannot be correct, if they contradict each other.
    pub fn contradiction(&self) -> Option<String> {
        if self.ops == 0 || self.seconds.is_nan() || self.seconds <= 0.0 {
            return Some(format!("{} operations in {} s", self.ops, self.seconds));
        }
        let rising = [self.p50_us, self.p90_us, self.p95_us, self.p99_us, self.p999_us, self.max_us];
        // A histogram returns the upper end of a bucket, which may be slightly above the largest value.
        let falls = rising.windows(2).find(|pair| pair[0] < 0.0 || pair[0] > pair[1] * 1.01 + 0.01)?;
        Some(format!("percentiles fall: {} us before {} us", falls[0], falls[1]))
    }
}

impl Row {
    /// Returns the figures if the trial was measured.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Failed { .. } => None,
        }
    }

    /// Returns the reason if the trial was not measured.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed { error } => Some(error),
        }
    }
}

impl Measured {
    /// Reads and checks a file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let format: Value =
            serde_json::from_str(&text).with_context(|| format!("{} is not valid JSON", path.display()))?;
        match format.get("format").and_then(Value::as_u64) {
            Some(number) if number == u64::from(FORMAT) => {}
            Some(number) => bail!("{} has format {number}; this program reads format {FORMAT}", path.display()),
            None => bail!("{} is not a result file: it has no `format`", path.display()),
        }
        serde_json::from_value(format).with_context(|| format!("{} is not a result file", path.display()))
    }

    /// Writes the complete file beside its destination and renames it.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        write_atomically(path, &text)
    }

    /// Returns the peers that have a row, in the order of their first row.
    pub fn peers(&self) -> Vec<&str> {
        distinct(self.results.iter().map(|row| row.peer.as_str()))
    }

    /// Returns the lanes that have a row, in the order of their first row.
    pub fn lane_names(&self) -> Vec<&str> {
        distinct(self.results.iter().map(|row| row.lane.as_str()))
    }

    /// Returns the rows of a lane and peer.
    pub fn rows<'a>(&'a self, lane: &'a str, peer: &'a str) -> impl Iterator<Item = &'a Row> {
        self.results.iter().filter(move |row| row.lane == lane && row.peer == peer)
    }
}

/// Returns each value once, in the order of first appearance.
pub fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

/// Creates the folder if necessary, and replaces a file atomically.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().prefix(".lab-").permissions(readable()).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a result readable for all users: a temporary file is private by default.
#[cfg(unix)]
fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

#[cfg(not(unix))]
fn readable() -> fs::Permissions {
    fs::metadata(std::env::temp_dir()).expect("there is a folder for temporary files").permissions()
}
