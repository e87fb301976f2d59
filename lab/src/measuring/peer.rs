//! Peers: their descriptions, their builds, and their lists of lanes.
//!
//! A peer is a program. `peer.json` in its folder contains its name, and how to build and call it; the program lists
//! its lanes. Leaves out: running a lane (`session`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::figures::floor::PacedBy;
use crate::figures::result::{Lane, Version};
use crate::measuring::layouts::Layouts;
use crate::measuring::process::{self, Interrupt};

/// The time limit of a build. A first build downloads and compiles SQLite, a runtime and a driver.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);
const LIST_LIMIT: Duration = Duration::from_secs(60);

/// One entry of a `peer.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// The name for `--peer`.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub about: String,
    /// The command that builds the peer, or several.
    #[serde(default)]
    build: Build,
    /// The program and its first arguments.
    command: Vec<String>,
    /// The programming language that calls SQLite.
    #[serde(default)]
    pub language: String,
    /// The folder of the description, where all its commands run.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The orders of functions that its program is measured in, if that is not the one that it was built with.
    #[serde(skip)]
    pub layouts: Option<Layouts>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Build {
    One(Vec<String>),
    Several(Vec<Vec<String>>),
}

impl Default for Build {
    fn default() -> Self {
        Self::Several(Vec::new())
    }
}

/// The output of `--list`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Listing {
    /// The library and its version.
    #[serde(default)]
    pub version: String,
    /// SQLite's version.
    #[serde(default)]
    pub sqlite: String,
    /// SQLite's compile options.
    #[serde(default)]
    pub compile_options: Vec<String>,
    lanes: Vec<ListedLane>,
}

#[derive(Clone, Debug, Deserialize)]
struct ListedLane {
    name: String,
    #[serde(default)]
    pace: Option<PacedBy>,
    #[serde(flatten)]
    lane: Lane,
}

impl Listing {
    /// Returns the lanes by name.
    pub fn lanes(&self) -> BTreeMap<String, Lane> {
        self.lanes.iter().map(|listed| (listed.name.clone(), listed.lane.clone())).collect()
    }

    /// Returns the names of the lanes in the peer's own order, which groups them.
    pub fn lane_names(&self) -> Vec<String> {
        self.lanes.iter().map(|listed| listed.name.clone()).collect()
    }

    /// Returns what paces a lane, if it is paced.
    pub fn paced_by(&self, lane: &str) -> Option<PacedBy> {
        self.lanes.iter().find(|listed| listed.name == lane)?.pace.clone()
    }

    /// Returns the version entry for a result file.
    pub fn version(&self, language: &str, rev: Option<String>) -> Version {
        let Self { version, sqlite, compile_options, .. } = self.clone();
        Version { version, sqlite, compile_options, language: language.to_owned(), rev }
    }
}

/// Loads all peers below a folder, in the order of folders and of their files.
pub fn load(peers_dir: &Path) -> Result<Vec<Peer>> {
    let entries = fs::read_dir(peers_dir).with_context(|| format!("cannot read {}", peers_dir.display()))?;
    let mut folders: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    folders.sort();
    let mut peers = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.join("peer.json").is_file()) {
        peers.extend(described_in(&folder)?);
    }
    if peers.is_empty() {
        bail!("no peer.json in any folder of {}", peers_dir.display());
    }
    peers.sort_by_key(|peer| (rank(&peer.name), peer.name.clone()));
    Ok(peers)
}

/// The order of peers: the floor and its variants, then common libraries, then Flatwater, then other languages.
fn rank(name: &str) -> usize {
    match name {
        "raw" => 0,
        "raw-held" => 1,
        _ if name.starts_with("raw") => 2,
        "mutex" => 3,
        "tokio-rusqlite" => 4,
        "sqlx" => 5,
        "flatwater" => 6,
        _ => 7,
    }
}

fn described_in(folder: &Path) -> Result<Vec<Peer>> {
    let file = folder.join("peer.json");
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let peers: Vec<Peer> =
        serde_json::from_str(&text).with_context(|| format!("{} does not describe peers", file.display()))?;
    let folder = folder.canonicalize()?;
    Ok(peers.into_iter().map(|peer| Peer { folder: folder.clone(), ..peer }).collect())
}

/// Returns the peers with these names in this order, or all peers. An unknown name is an error that lists the known
/// ones.
pub fn choose(peers: Vec<Peer>, names: &[String]) -> Result<Vec<Peer>> {
    if names.is_empty() {
        return Ok(peers);
    }
    let find = |name: &String| peers.iter().find(|peer| peer.name == *name).cloned();
    names
        .iter()
        .map(|name| find(name).ok_or_else(|| unknown("peer", name, peers.iter().map(|peer| &*peer.name))))
        .collect()
}

/// Returns the error for an unknown name.
pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> anyhow::Error {
    anyhow!("unknown {what} `{name}`; the known ones are {}", known.collect::<Vec<_>>().join(", "))
}

impl Peer {
    /// Builds the peer. Cargo's output goes to `target`.
    pub fn build(&self, target: &Path, interrupt: &Interrupt) -> Result<()> {
        let commands = match &self.build {
            Build::One(words) => std::slice::from_ref(words),
            Build::Several(commands) => commands.as_slice(),
        };
        let stamp = Stamp::of(&self.folder);
        if stamp.stands() {
            return Ok(());
        }
        for words in commands {
            let mut command = self.command_of(words, target)?;
            if let Some(layouts) = &self.layouts {
                layouts.set(&mut command);
            }
            process::run(&mut command, BUILD_LIMIT, interrupt)
                .and_then(process::Ended::success)
                .with_context(|| format!("`{}` failed", words.join(" ")))?;
        }
        stamp.set()
    }

    /// Asks the peer for its versions and its lanes.
    pub fn list(&self, target: &Path, interrupt: &Interrupt) -> Result<Listing> {
        let text = process::run(self.call(target)?.arg("--list"), LIST_LIMIT, interrupt)?.success()?;
        serde_json::from_str(&text).context("its --list is not the JSON it should be")
    }

    /// Returns the command that calls the peer, without arguments.
    pub fn call(&self, target: &Path) -> Result<Command> {
        self.command_of(&self.command, target)
    }

    /// Returns the command that calls the peer in one run, without arguments.
    pub fn call_in(&self, run: u32, target: &Path) -> Result<Command> {
        let mut command = self.call(target)?;
        if let Some(layouts) = &self.layouts {
            let program = layouts.of_run(Path::new(command.get_program()), run)?;
            let mut other = Command::new(program);
            other.args(command.get_args()).current_dir(&self.folder);
            command = other;
        }
        Ok(command)
    }

    fn command_of(&self, words: &[String], target: &Path) -> Result<Command> {
        let words: Vec<String> = words.iter().map(|word| word.replace("{target}", &target.to_string_lossy())).collect();
        let Some((program, arguments)) = words.split_first() else {
            bail!("peer {} has an empty command in {}", self.name, self.folder.display());
        };
        // A path is relative to the folder; a bare name is searched in PATH.
        let program = if program.contains('/') { self.folder.join(program) } else { PathBuf::from(program) };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env("CARGO_TARGET_DIR", target);
        // Each build must use the flags of its own sources, not those that this program was started with.
        command.env_remove("LIBSQLITE3_FLAGS");
        Ok(command)
    }
}

/// Records, in the folder that a package manager installed into, the lists it was installed for. Cargo does this
/// itself.
struct Stamp {
    installed: Vec<PathBuf>,
    lists: String,
}

impl Stamp {
    fn of(folder: &Path) -> Self {
        let lists = ["peer.json", "requirements.txt", "package-lock.json"];
        Self {
            installed: [".venv", "node_modules"].iter().map(|name| folder.join(name)).collect(),
            lists: lists.iter().filter_map(|name| fs::read_to_string(folder.join(name)).ok()).collect(),
        }
    }

    fn stands(&self) -> bool {
        let stamps = self.installed.iter().filter_map(|folder| fs::read_to_string(folder.join(".lab-built")).ok());
        stamps.into_iter().any(|stamp| stamp == self.lists)
    }

    fn set(&self) -> Result<()> {
        for folder in self.installed.iter().filter(|folder| folder.is_dir()) {
            fs::write(folder.join(".lab-built"), &self.lists)?;
        }
        Ok(())
    }
}
