//! Result files: what a run writes and everything else reads.
//!
//! Owns the format and its number, reading with clear errors, and writing so that a kill leaves either the file before
//! or the file after. Leaves out where the figures come from and what they mean.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::machine::Machine;
use crate::metric::OPS_PER_SECOND;

/// The number of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// One file: the circumstances, and a row per trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// [`FORMAT`].
    pub format: u32,
    /// Names this measurement. Rows of equal ids were measured in turn and may be paired.
    pub id: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// `run` or `ab`.
    pub kind: Kind,
    /// Where.
    pub machine: Machine,
    /// What the peers said of themselves, by peer.
    pub versions: BTreeMap<String, Version>,
    /// How the peers were built.
    pub flags: Flags,
    /// The commit of the working tree.
    pub commit: Option<String>,
    /// Whether the working tree had changes.
    pub dirty: bool,
    /// Whether the run was ended before its plan.
    pub partial: bool,
    /// Whether the lanes ran in their small form.
    pub quick: bool,
    /// How many runs a side were planned.
    pub runs: u32,
    /// Lanes that the change cannot reach, as an `ab` was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<String>,
    /// What the reader of the figures must know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the lanes are, by name.
    pub lanes: BTreeMap<String, Lane>,
    /// One row per trial, in the order of their ends.
    pub results: Vec<Row>,
}

/// What made a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Peers beside each other.
    Run,
    /// Two revisions beside each other.
    Ab,
}

/// What a peer says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Version {
    /// The library and its version.
    pub version: String,
    /// SQLite's version.
    pub sqlite: String,
    /// SQLite's compile options.
    pub compile_options: Vec<String>,
    /// The language it is called from.
    pub language: String,
    /// The commit it was built from, in an `ab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
}

/// How peers that are compiled here were compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flags {
    /// The compiler.
    pub rustc: String,
    /// SQLite's build flags of the workspace.
    pub sqlite_flags: String,
}

/// What a lane is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lane {
    /// One line.
    pub about: String,
    /// `release` or `focused`.
    pub tag: String,
    /// The group it stands in.
    pub group: String,
    /// What is counted.
    pub ops_unit: String,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The lane.
    pub lane: String,
    /// The peer, or the side in an `ab`.
    pub peer: String,
    /// The run, from 0. Trials of one lane and run were measured one after the other.
    pub run: u32,
    /// The place among the trials of its lane and run, from 0.
    pub order: u32,
    /// The commit, in an `ab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// Figures, or the error.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// It did not.
    Failed {
        /// Why, for a person.
        error: String,
    },
    /// It was measured.
    Measured(Box<Figures>),
}

/// The figures of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Operations.
    pub ops: u64,
    /// Wall time of the timed part.
    pub seconds: f64,
    /// Median latency.
    pub p50_us: f64,
    /// 90 of 100 are at most this.
    pub p90_us: f64,
    /// 95 of 100.
    pub p95_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// The median without what an operation that does nothing costs.
    pub work_us: Option<f64>,
    /// CPU time of the process during the timed part.
    pub cpu_seconds: Option<f64>,
    /// The most memory the process had.
    pub peak_rss_bytes: Option<f64>,
    /// Figures of this lane alone.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Figures {
    /// Every number by name, the rate and those of `extra` among them.
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

    /// The number of that name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers().into_iter().find(|(known, _)| known == name).map(|(_, number)| number)
    }

    /// Why these figures cannot be true, if so.
    pub fn contradiction(&self) -> Option<String> {
        if self.ops == 0 || self.seconds.is_nan() || self.seconds <= 0.0 {
            return Some(format!("{} operations in {} s", self.ops, self.seconds));
        }
        let rising = [self.p50_us, self.p90_us, self.p95_us, self.p99_us, self.p999_us, self.max_us];
        // A histogram answers the upper end of a bucket, which may lie a little above the largest value.
        let falls = rising.windows(2).find(|pair| pair[0] < 0.0 || pair[0] > pair[1] * 1.01 + 0.01)?;
        Some(format!("percentiles fall: {} us before {} us", falls[0], falls[1]))
    }
}

impl Row {
    /// The figures, if the trial was measured.
    pub fn figures(&self) -> Option<&Figures> {
        match &self.outcome {
            Outcome::Measured(figures) => Some(figures),
            Outcome::Failed { .. } => None,
        }
    }

    /// Why it was not measured.
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Measured(_) => None,
            Outcome::Failed { error } => Some(error),
        }
    }
}

impl Measured {
    /// Reads a file.
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

    /// Writes the whole file beside its place and moves it there.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        write_atomically(path, &text)
    }

    /// The peers that have a row, in the order of their first row.
    pub fn peers(&self) -> Vec<&str> {
        distinct(self.results.iter().map(|row| row.peer.as_str()))
    }

    /// The lanes that have a row, in the order of their first row.
    pub fn lane_names(&self) -> Vec<&str> {
        distinct(self.results.iter().map(|row| row.lane.as_str()))
    }

    /// The rows of a lane and peer.
    pub fn rows<'a>(&'a self, lane: &'a str, peer: &'a str) -> impl Iterator<Item = &'a Row> {
        self.results.iter().filter(move |row| row.lane == lane && row.peer == peer)
    }
}

/// Each value once, in the order of first appearance.
pub fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

/// Puts a file in its place whole, and its folder before it.
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

/// A temporary file is private by default; a result is not.
#[cfg(unix)]
fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

#[cfg(not(unix))]
fn readable() -> fs::Permissions {
    fs::metadata(std::env::temp_dir()).expect("there is a folder for temporary files").permissions()
}
