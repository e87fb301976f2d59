//! `experiment`: creates and finalizes records of experiments. Owns: the files of `lab/experiments`. Leaves out: the
//! record's text (`record`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::figures::result::{BASE, CANDIDATE, Kind, Measured, write_atomically};
use crate::measuring::repository::Repository;
use crate::records::aggregates::Aggregates;
use crate::records::record::{Record, Status, slug, template};
use crate::verdicts::compare::{self, Comparison, Request};
use crate::verdicts::verdict::Verdict;

/// `experiment`.
#[derive(Args, Debug)]
pub struct ExperimentArgs {
    #[command(subcommand)]
    command: ExperimentCommand,
    /// Where the experiments are
    #[arg(long, value_name = "DIR", global = true)]
    experiments_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum ExperimentCommand {
    /// Begin a record
    New {
        /// What is tried, in a few words
        title: String,
    },
    /// Check a record, give it its number and attach its figures
    Finalize(FinalizeArgs),
}

#[derive(Args, Debug)]
struct FinalizeArgs {
    /// The draft
    draft: PathBuf,
    /// The result it rests on
    #[arg(long, value_name = "FILE")]
    result: PathBuf,
    /// The peer of the base, if the result is not one of `ab`
    #[arg(long, value_name = "PEER", requires = "candidate")]
    base: Option<String>,
    /// The peer of the candidate
    #[arg(long, value_name = "PEER", requires = "base")]
    candidate: Option<String>,
    /// The change as a patch, if it is not the difference of the result's two commits
    #[arg(long, value_name = "FILE")]
    patch: Option<PathBuf>,
}

/// One line of the index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The experiment's number, from 1.
    pub number: u32,
    /// The experiment's title.
    pub title: String,
    /// Accepted or rejected.
    pub status: Status,
    /// The date it was opened.
    pub opened: String,
    /// The date of the decision.
    pub decided: String,
    /// The lanes it concerns.
    pub lanes: Vec<String>,
    /// The first paragraph of the decision.
    pub decision: String,
    /// The file name of the record.
    pub record: String,
    /// The file name of the figures.
    pub aggregates: String,
    /// The file name of the patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

const INDEX: &str = "index.json";

/// Returns the finished experiments in a folder; an empty list if there is no index.
pub fn index(folder: &Path) -> Result<Vec<Entry>> {
    let path = folder.join(INDEX);
    match fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} is not an index", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Opens or finalizes a record.
pub fn experiment(args: &ExperimentArgs) -> Result<bool> {
    let repository = Repository::here()?;
    let folder = args.experiments_dir.clone().unwrap_or_else(|| repository.root.join("lab/experiments"));
    match &args.command {
        ExperimentCommand::New { title } => begin(&folder, title),
        ExperimentCommand::Finalize(args) => finalize(&repository, &folder, args),
    }
}

fn begin(folder: &Path, title: &str) -> Result<bool> {
    let name = slug(title);
    if name.is_empty() {
        bail!("a title needs a letter or a figure");
    }
    let path = folder.join("drafts").join(format!("{name}.md"));
    if path.exists() {
        bail!("{} is there already", path.display());
    }
    let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    write_atomically(&path, template(title.trim(), &today[..10]).as_bytes())?;
    println!("{}", path.display());
    Ok(true)
}

/// Finalizes a record. Everything is checked and computed before the first file is written.
fn finalize(repository: &Repository, folder: &Path, args: &FinalizeArgs) -> Result<bool> {
    let draft = &args.draft;
    let text = fs::read_to_string(draft).with_context(|| format!("cannot read {}", draft.display()))?;
    let record = Record::parse(&text).with_context(|| format!("{} is not finished", draft.display()))?;
    let measured = Measured::read(&args.result)?;
    check_lanes(&record, &measured)?;
    let comparison = comparison(&record, &measured, args)?;
    if let Some(comparison) = &comparison {
        check_verdict(&record, comparison)?;
    }
    let mut entries = index(folder)?;
    let number = entries.iter().map(|entry| entry.number).max().unwrap_or(0) + 1;
    let stem = format!("{number:03}-{}", slug(&record.title));
    let patch = patch(repository, &record, &measured, args)?;
    let aggregates = Aggregates::of(&measured, &record, comparison.as_ref());

    let entry = Entry {
        number,
        title: record.title.clone(),
        status: record.status,
        opened: record.opened.clone(),
        decided: record.decided.clone(),
        lanes: record.lanes.clone(),
        decision: record.decision.clone(),
        record: format!("{stem}.md"),
        aggregates: format!("{stem}.json"),
        patch: patch.as_ref().map(|_| format!("{stem}.patch")),
    };
    write_atomically(&folder.join(&entry.aggregates), aggregates.text()?.as_bytes())?;
    if let (Some(name), Some(patch)) = (&entry.patch, &patch) {
        write_atomically(&folder.join(name), patch.as_bytes())?;
    }
    write_atomically(&folder.join(&entry.record), text.as_bytes())?;
    println!("{}", folder.join(&entry.record).display());
    entries.push(entry);
    write_atomically(&folder.join(INDEX), &pretty(&entries)?)?;
    fs::remove_file(draft).with_context(|| format!("cannot remove {}", draft.display()))?;
    Ok(true)
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}

fn check_lanes(record: &Record, measured: &Measured) -> Result<()> {
    let lanes = measured.lane_names();
    if let Some(lane) = record.lanes.iter().chain(&record.controls).find(|lane| !lanes.contains(&lane.as_str())) {
        bail!("the record names lane `{lane}`, which the result does not have; it has {}", lanes.join(", "));
    }
    if measured.partial || measured.quick {
        bail!("the result is {}: no record can rest on it", if measured.quick { "quick" } else { "partial" });
    }
    Ok(())
}

fn comparison(record: &Record, measured: &Measured, args: &FinalizeArgs) -> Result<Option<Comparison>> {
    let sides = match (&args.base, &args.candidate) {
        (Some(base), Some(candidate)) => Some((base.clone(), candidate.clone())),
        _ if measured.kind == Kind::Ab => Some((BASE.to_owned(), CANDIDATE.to_owned())),
        _ => None,
    };
    let Some((base, candidate)) = sides else {
        return Ok(None);
    };
    let controls = record.controls.clone();
    let request = Request { base: Some(base), candidate: Some(candidate), controls, anyway: true };
    Ok(compare::files(measured, measured, &request)?.into_iter().next())
}

/// Checks that an accepted change has a lane that supports it, and no lane that contradicts it.
fn check_verdict(record: &Record, comparison: &Comparison) -> Result<()> {
    if record.status == Status::Rejected {
        return Ok(());
    }
    let own = || comparison.lanes.iter().filter(|lane| record.lanes.contains(&lane.lane));
    if let Some(against) = own().find(|lane| lane.verdict == Verdict::Rejected) {
        bail!("the record says accepted, but {}: {}", against.lane, against.reason);
    }
    if !own().any(|lane| lane.verdict == Verdict::Accepted) {
        bail!("the record says accepted, but the result accepts none of its lanes");
    }
    Ok(())
}

/// Returns the patch of a rejected change: the given one, or the difference between the two commits.
fn patch(repository: &Repository, record: &Record, measured: &Measured, args: &FinalizeArgs) -> Result<Option<String>> {
    if let Some(path) = &args.patch {
        return Ok(Some(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?));
    }
    let rev = |side: &str| measured.versions.get(side).and_then(|version| version.rev.clone());
    match (record.status, rev(BASE), rev(CANDIDATE)) {
        (Status::Rejected, Some(_), Some(_)) if measured.dirty => {
            bail!("the change was measured before it was committed: give it with --patch")
        }
        (Status::Rejected, Some(base), Some(candidate)) => repository.diff(&base, &candidate).map(Some),
        _ => Ok(None),
    }
}
