//! `run`: measures several peers.
//!
//! Owns: the choice of peers and lanes, and the circumstances of a new result. Leaves out: the trials (`session`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::figures::floor::PacedBy;
use crate::figures::machine::Machine;
use crate::figures::result::{FORMAT, Flags, Kind, Measured, distinct};
use crate::measuring::pace;
use crate::measuring::peer::{self, Peer, unknown};
use crate::measuring::places::Places;
use crate::measuring::process::Interrupt;
use crate::measuring::repository::Repository;
use crate::measuring::session::{Settings, Side, carry_out};

/// What `run` and `ab` both take.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// Lanes, separated by commas
    #[arg(long = "lane", value_name = "LANES", value_delimiter = ',')]
    pub lanes: Vec<String>,
    /// Only lanes of this tag: release or focused
    #[arg(long, conflicts_with = "lanes")]
    pub tag: Option<String>,
    /// Runs a side
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// The small form of every lane: shows that it works, not how fast
    #[arg(long)]
    pub quick: bool,
    /// The result file; `-` writes it to standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The longest a single trial may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub limit: u64,
    /// Where the databases lie while they are measured
    #[arg(long, value_name = "DIR")]
    pub trials_dir: Option<PathBuf>,
    /// Where the peers' programs are built
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
}

/// `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Peers, separated by commas; all if left out
    #[arg(long = "peer", value_name = "PEERS", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Where peers are described
    #[arg(long, value_name = "DIR")]
    pub peers_dir: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its fields are the help")]
    pub common: Common,
}

/// Measures peers. Returns whether every trial ran.
pub fn run(args: &RunArgs, interrupt: &Interrupt) -> Result<bool> {
    let repository = Repository::here()?;
    let peers_dir = args.peers_dir.clone().unwrap_or_else(|| repository.peers());
    let peers = peer::choose(peer::load(&peers_dir)?, &args.peers)?;
    let target = args.common.target_dir.clone().unwrap_or_else(|| peers_dir.join("target"));
    let target = std::path::absolute(target)?;
    let trials_dir = args.common.trials_dir(&repository)?;
    let mut measured = begin(Kind::Run, &repository, &args.common, &trials_dir);
    let sides = prepare(peers, &target, interrupt)?;
    let lanes = args.common.choose_lanes(&sides)?;
    let places = Places { repository: &repository, trials: &trials_dir, peers: &peers_dir, target: &target };
    args.common.measure(&sides, &lanes, &mut measured, &places, interrupt)
}

/// Builds the peers. Peers of one language share a folder and are built one after another; different languages are
/// built in parallel.
fn prepare(peers: Vec<Peer>, target: &Path, interrupt: &Interrupt) -> Result<Vec<Side>> {
    let mut languages: BTreeMap<String, Vec<(usize, Peer)>> = BTreeMap::new();
    for (place, peer) in peers.into_iter().enumerate() {
        languages.entry(peer.language.clone()).or_default().push((place, peer));
    }
    let prepare_language = |peers: Vec<(usize, Peer)>| -> Result<Vec<(usize, Side)>> {
        let side = |(place, peer): (usize, Peer)| {
            let name = peer.name.clone();
            Ok((place, Side::prepare(&name, peer, target, None, interrupt)?))
        };
        peers.into_iter().map(side).collect()
    };
    let prepared: Vec<Result<Vec<(usize, Side)>>> = std::thread::scope(|scope| {
        let builds: Vec<_> = languages.into_values().map(|peers| scope.spawn(|| prepare_language(peers))).collect();
        let ended = |build: ScopedJoinHandle<'_, _>| build.join().unwrap_or_else(|_| Err(anyhow!("a build panicked")));
        builds.into_iter().map(ended).collect()
    });
    let mut sides: Vec<(usize, Side)> =
        prepared.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    sides.sort_by_key(|(place, _)| *place);
    Ok(sides.into_iter().map(|(_, side)| side).collect())
}

/// Returns a result that has everything except rows.
pub fn begin(kind: Kind, repository: &Repository, common: &Common, trials_dir: &Path) -> Measured {
    let state = repository.state();
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    Measured {
        format: FORMAT,
        id: format!("{started}-{}", std::process::id()),
        started,
        kind,
        machine: Machine::here(trials_dir),
        versions: Default::default(),
        flags: flags(repository),
        commit: state.commit,
        dirty: state.dirty,
        partial: true,
        quick: common.quick,
        runs: common.runs,
        controls: Vec::new(),
        notes: Vec::new(),
        paces: Default::default(),
        lanes: Default::default(),
        results: Vec::new(),
    }
}

/// Returns the compiler's version and SQLite's flags, as the checkout sets them.
fn flags(repository: &Repository) -> Flags {
    let output = Command::new("rustc").arg("--version").current_dir(&repository.root).output();
    let rustc = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    let config = std::fs::read_to_string(repository.root.join(".cargo/config.toml")).unwrap_or_default();
    let table: toml::Table = config.parse().unwrap_or_default();
    let sqlite_flags = table.get("env").and_then(|env| env.get("LIBSQLITE3_FLAGS")).and_then(toml::Value::as_str);
    Flags { rustc, sqlite_flags: sqlite_flags.unwrap_or_default().to_owned() }
}

impl Common {
    /// Creates and returns the folder for the trials.
    pub fn trials_dir(&self, repository: &Repository) -> Result<PathBuf> {
        let folder = self.trials_dir.clone().unwrap_or_else(|| repository.out().join("trials"));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder.canonicalize()?)
    }

    /// Returns the requested lanes, or those of the tag, or all.
    pub fn choose_lanes(&self, sides: &[Side]) -> Result<Vec<String>> {
        let mut listings: Vec<_> = sides.iter().filter_map(|side| side.listing.as_ref().ok()).collect();
        // The peer with the most lanes determines their order.
        listings.sort_by_key(|listing| std::cmp::Reverse(listing.lane_names().len()));
        let names: Vec<String> = listings.iter().flat_map(|listing| listing.lane_names()).collect();
        let known = distinct(names.iter().map(String::as_str));
        if listings.is_empty() && !self.lanes.is_empty() {
            return Ok(self.lanes.clone());
        }
        if let Some(name) = self.lanes.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(unknown("lane", name, known.into_iter()));
        }
        if !self.lanes.is_empty() {
            return Ok(distinct(self.lanes.iter().map(String::as_str)).into_iter().map(str::to_owned).collect());
        }
        let tagged = |name: &&str| match &self.tag {
            None => true,
            Some(tag) => listings.iter().any(|listing| listing.lanes().get(*name).is_some_and(|lane| lane.tag == *tag)),
        };
        let lanes: Vec<String> = known.into_iter().filter(tagged).map(str::to_owned).collect();
        match &self.tag {
            Some(tag) if lanes.is_empty() => {
                bail!("no lane has the tag `{tag}`; the tags are release, focused")
            }
            _ if lanes.is_empty() => bail!("none of these peers can be measured"),
            _ => Ok(lanes),
        }
    }

    /// Runs the plan and prints the path of the result.
    pub fn measure(
        &self,
        sides: &[Side],
        lanes: &[String],
        measured: &mut Measured,
        places: &Places,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let json = self.json_path(measured, places.repository);
        let mut settings = Settings {
            lanes,
            runs: self.runs,
            quick: self.quick,
            trials_dir: places.trials,
            limit: Duration::from_secs(self.limit),
            json: json.as_deref(),
            rates: Default::default(),
        };
        let paced = pace::paced(sides, lanes);
        settings.rates = pace::measure(&paced, sides, places, &settings, interrupt)?;
        let pace = |(lane, by): (String, PacedBy)| Some((lane, by.pace(&settings.rates).ok()?));
        measured.paces = paced.into_iter().filter_map(pace).collect();
        let all_ran = carry_out(sides, &settings, measured, interrupt)?;
        if let Some(path) = json {
            eprintln!("{} rows in {}", measured.results.len(), path.display());
        }
        Ok(all_ran)
    }

    /// Returns the path of the result; `None` means standard output.
    pub fn json_path(&self, measured: &Measured, repository: &Repository) -> Option<PathBuf> {
        match &self.json {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(path.clone()),
            None => {
                let kind = if measured.kind == Kind::Ab { "ab" } else { "run" };
                let at = measured.started.replace([':', '-'], "");
                Some(repository.out().join(format!("{kind}-{at}.json")))
            }
        }
    }
}
