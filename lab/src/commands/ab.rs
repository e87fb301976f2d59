//! `ab`: compares two revisions of Flatwater, trial by trial. This is the main instrument.
//!
//! Owns: the two checkouts and their builds. Leaves out: the trials (`session`) and the verdicts (`compare`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::commands::run::{Common, begin};
use crate::figures::floor::FLOOR;
use crate::figures::metric::is_noop;
use crate::figures::result::{BASE, CANDIDATE, Kind, distinct};
use crate::measuring::layouts::Layouts;
use crate::measuring::peer;
use crate::measuring::places::Places;
use crate::measuring::process::Interrupt;
use crate::measuring::repository::{Repository, Worktree};
use crate::measuring::session::Side;
use crate::verdicts::compare::{Comparison, Request};

/// The revision that stands for the current working tree.
const WORKING_TREE: &str = ".";

/// `ab`.
#[derive(Args, Debug)]
pub struct AbArgs {
    /// The revision to compare with
    pub base: String,
    /// The revision under test; `.` is the working tree as it is
    pub candidate: String,
    /// The peer that is built from both
    #[arg(long, default_value = "flatwater")]
    pub peer: String,
    /// Lanes that the change cannot reach: if one gets worse the change is refused
    #[arg(long = "control", value_name = "LANES", value_delimiter = ',')]
    pub controls: Vec<String>,
    /// Measure both with the lanes of the working tree, not each with its own
    #[arg(long)]
    pub current_peers: bool,
    /// In how many other orders of functions both programs are linked; each run takes the next. 0 is the order they have
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub layouts: u32,
    #[command(flatten)]
    #[allow(missing_docs, reason = "its fields are the help")]
    pub common: Common,
}

/// Builds both sides, measures both, and prints the verdicts. Returns whether every trial ran.
pub fn ab(args: &AbArgs, interrupt: &Interrupt) -> Result<bool> {
    let repository = Repository::here()?;
    let bench = Bench::open(&repository, args)?;
    let trials_dir = args.common.trials_dir(&repository)?;
    let mut measured = begin(Kind::Ab, &repository, &args.common, &trials_dir);
    let base = bench.source(&args.base, BASE)?;
    let candidate = bench.source(&args.candidate, CANDIDATE)?;
    measured.commit = candidate.commit.clone();
    measured.dirty = base.dirty || candidate.dirty;
    measured.controls = args.controls.clone();
    measured.notes = bench.notes(&base, &candidate);
    measured.notes.iter().for_each(|note| eprintln!("note: {note}"));
    let sides = [bench.side(&base, interrupt)?, bench.side(&candidate, interrupt)?];
    let lanes = with_guards(args, &sides)?;
    let (peers, target) = (repository.peers(), bench.target(FLOOR)?);
    let places = Places { repository: &repository, trials: &trials_dir, peers: &peers, target: &target };
    let all_ran = args.common.measure(&sides, &lanes, &mut measured, &places, interrupt)?;
    let comparison = Comparison::within(&measured, BASE, CANDIDATE, &Request::default());
    let text = comparison.to_string();
    if args.common.json_path(&measured, &repository).is_some() {
        println!("{text}")
    } else {
        eprintln!("{text}")
    }
    Ok(all_ran)
}

/// Returns the requested lanes, or the release lanes, and the lanes that can veto: noop lanes and controls.
fn with_guards(args: &AbArgs, sides: &[Side; 2]) -> Result<Vec<String>> {
    if let Some((side, error)) = sides.iter().find_map(|side| Some((side, side.listing.as_ref().err()?))) {
        bail!("the {} cannot be measured: {error}", side.name);
    }
    let mut asked = args.common.clone();
    if asked.lanes.is_empty() {
        asked.tag.get_or_insert_with(|| "release".to_owned());
    }
    let chosen = asked.choose_lanes(sides)?;
    let all = Common { lanes: Vec::new(), tag: None, ..args.common.clone() }.choose_lanes(sides)?;
    if let Some(name) = args.controls.iter().find(|control| !all.contains(control)) {
        return Err(peer::unknown("lane", name, all.iter().map(String::as_str)));
    }
    let guards = all.iter().filter(|lane| is_noop(lane));
    let names = guards.chain(&args.controls).chain(&chosen).map(String::as_str);
    Ok(distinct(names).into_iter().map(str::to_owned).collect())
}

/// The directory where both sides are built. Only one `ab` at a time uses it.
struct Bench<'a> {
    repository: &'a Repository,
    args: &'a AbArgs,
    folder: PathBuf,
    _lock: File,
}

/// The sources of one side.
struct Source {
    name: &'static str,
    commit: Option<String>,
    dirty: bool,
    repository: Repository,
    borrowed_peers: bool,
    _worktree: Option<Worktree>,
}

impl<'a> Bench<'a> {
    fn open(repository: &'a Repository, args: &'a AbArgs) -> Result<Self> {
        let folder = repository.out().join("ab");
        fs::create_dir_all(&folder)?;
        let lock = File::create(folder.join("lock"))?;
        if lock.try_lock().is_err() {
            bail!("another `ab` is at work in {}", folder.display());
        }
        Ok(Self { repository, args, folder, _lock: lock })
    }

    /// Returns the sources of a revision. Both sides' paths have the same length, because paths become part of
    /// programs.
    fn source(&self, revision: &str, name: &'static str) -> Result<Source> {
        if revision == WORKING_TREE {
            let state = self.repository.state();
            let repository = self.repository.clone();
            return Ok(Source {
                name,
                commit: state.commit,
                dirty: state.dirty,
                repository,
                borrowed_peers: false,
                _worktree: None,
            });
        }
        let commit = self.repository.commit_of(revision)?;
        let worktree = self.repository.checkout(&commit, &self.folder.join(&name[..4]))?;
        let repository = worktree.repository();
        let own = repository.peers().join(&self.args.peer).join("peer.json").is_file();
        let borrowed_peers = self.args.current_peers || !own;
        if borrowed_peers {
            let _ = fs::remove_dir_all(repository.peers());
            copy(&self.repository.peers(), &repository.peers()).context("cannot copy the peers")?;
        }
        Ok(Source { name, commit: Some(commit), dirty: false, repository, borrowed_peers, _worktree: Some(worktree) })
    }

    fn notes(&self, base: &Source, candidate: &Source) -> Vec<String> {
        let mut notes = Vec::new();
        if self.args.layouts > 0 {
            notes.push(format!("the functions lie in another order in each of {} runs", self.args.layouts));
        }
        for source in [base, candidate] {
            if source.dirty {
                notes.push(format!("the {} is a working tree with changes", source.name));
            }
            if source.borrowed_peers {
                notes.push(format!("the {} was measured with the working tree's lanes", source.name));
            }
        }
        let lanes = |source: &Source| {
            let commit = source.commit.as_deref().filter(|_| !source.borrowed_peers && !source.dirty)?;
            self.repository.tree_of(commit, "lab/peers")
        };
        match (lanes(base), lanes(candidate)) {
            (Some(base), Some(candidate)) if base != candidate => {
                notes.push("the lanes' sources differ between the two revisions".to_owned());
            }
            _ => {}
        }
        notes
    }

    fn side(&self, source: &Source, interrupt: &Interrupt) -> Result<Side> {
        let peers =
            peer::load(&source.repository.peers()).with_context(|| format!("the {} has no peers", source.name))?;
        let mut peer = peer::choose(peers, std::slice::from_ref(&self.args.peer))?.remove(0);
        if self.args.layouts > 0 {
            peer.layouts = Some(Layouts::new(self.args.layouts, &self.folder)?);
        }
        Side::prepare(source.name, peer, &self.target(&source.name[..4])?, source.commit.clone(), interrupt)
    }

    /// Returns the folder for the programs of one side.
    fn target(&self, name: &str) -> Result<PathBuf> {
        let targets = self.args.common.target_dir.clone().unwrap_or_else(|| self.folder.join("target"));
        Ok(std::path::absolute(targets.join(name))?)
    }
}

/// Copies sources, without build output.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if ["target", ".venv", "node_modules", "__pycache__"].iter().any(|left| name == *left) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(name))?;
        } else {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
