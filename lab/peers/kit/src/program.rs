//! The program every Rust peer is: lists its lanes, or runs one trial of one lane and prints its figures.
//!
//! Owns: the command line and the JSON on standard output. Leaves out: fresh directories and repetition, which are the
//! tool's work.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Parser};
use serde_json::{Value, json};

use crate::lane::{Info, Lane, Trial};
use crate::lanes;
use crate::peer::{About, Durability, Peer, Setup, Table};

/// Measures one library in one lane.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// How many operations a second a paced lane begins.
    #[arg(long, value_name = "RATE")]
    per_second: Option<f64>,
}

// What the tool asks of any peer's program. No comment for the help, where it would stand in the place of the program's own.
#[allow(missing_docs, reason = "its fields are the help")]
#[derive(Debug, Args)]
pub struct Asked {
    /// Print what this peer is and the lanes it runs.
    #[arg(long, required_unless_present = "lane")]
    pub list: bool,
    /// Run one trial of this lane.
    #[arg(long, requires = "dir", conflicts_with = "list")]
    pub lane: Option<String>,
    /// The fresh directory for all files of the trial.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// The lane's small form.
    #[arg(long)]
    pub quick: bool,
    /// Which of this program's peers to be, if it is several.
    #[arg(long = "as", value_name = "PEER")]
    pub name: Option<String>,
}

/// Runs the program.
#[must_use]
pub fn main<P: Peer>() -> ExitCode {
    exit(run::<P>(&Arguments::parse()).and_then(|answer| say(&answer)))
}

/// Prints the answer of a program.
pub fn say(answer: &Value) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{answer}")?)
}

/// Ends a program. An error is said on standard error.
#[must_use]
pub fn exit(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run<P: Peer>(Arguments { asked, per_second }: &Arguments) -> Result<Value> {
    let about = P::about();
    let name = asked.name.as_deref().unwrap_or(about.names[0]);
    if !about.names.contains(&name) {
        bail!("this program has no peer {name:?}; it has {}", about.names.join(", "));
    }
    match (&asked.lane, &asked.dir) {
        (Some(lane), Some(dir)) => trial::<P>(&about, lane, Trial::new(name, dir, asked.quick, *per_second)),
        _ => list::<P>(&about, name),
    }
}

fn offered<P: Peer>(about: &About, name: &str) -> Vec<Lane> {
    let fits = |info: &Info| !(about.one_thread && info.tasks) && P::offers(name, info);
    lanes::all::<P>().into_iter().filter(|lane| fits(&lane.info)).collect()
}

fn list<P: Peer>(about: &About, name: &str) -> Result<Value> {
    let dir = tempfile::tempdir().context("a directory for temporary files is needed")?;
    let (sqlite, compile_options) = sqlite::<P>(name, dir.path())?;
    let lanes: Vec<Info> = offered::<P>(about, name).into_iter().map(|lane| lane.info).collect();
    Ok(json!({
        "peer": name,
        "version": about.version,
        "sqlite": sqlite,
        "compile_options": compile_options,
        "lanes": lanes,
    }))
}

fn trial<P: Peer>(about: &About, lane: &str, trial: Trial) -> Result<Value> {
    let (name, dir) = (&*trial.peer.clone(), &*trial.dir.clone());
    let mut lanes = offered::<P>(about, name);
    let Some(at) = lanes.iter().position(|offered| offered.info.name == lane) else {
        let known: Vec<_> = lanes.iter().map(|lane| lane.info.name.as_str()).collect();
        bail!("{name} has no lane {lane:?}; it has {}", known.join(", "));
    };
    if !dir.is_dir() {
        bail!("{} is not a directory", dir.display());
    }
    if dir.join("lab.db").exists() {
        bail!("{} has a database of an earlier trial in it; give a fresh directory", dir.display());
    }
    let measured = lanes.swap_remove(at).run(about, trial)?;
    let mut report = measured.report()?;
    let (sqlite, compile_options) = sqlite::<P>(name, dir)?;
    report.insert("lane".into(), lane.into());
    report.insert("peer".into(), name.into());
    report.insert("peer_version".into(), about.version.clone().into());
    report.insert("sqlite".into(), sqlite.into());
    report.insert("compile_options".into(), compile_options.into());
    Ok(report.into())
}

/// SQLite's version and compile options, as the peer itself answers them.
fn sqlite<P: Peer>(name: &str, dir: &Path) -> Result<(String, Vec<String>)> {
    let setup = Setup { name: name.to_owned(), path: dir.join("about.db"), durability: Durability::Normal };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let peer = P::open(&setup).await?;
        let version = peer.query::<(String,)>("SELECT sqlite_version()", &[]).await?.records()?;
        let options = peer.query::<(String,)>("PRAGMA compile_options", &[]).await?.records()?;
        peer.close().await?;
        let version = version.into_iter().next().ok_or_else(|| anyhow!("SQLite answered no version"))?;
        Ok((version.0, options.into_iter().map(|option| option.0).collect()))
    })
}

/// The version of a package in a `Cargo.lock`, with its name: the one this program was built with.
#[must_use]
pub fn version_in(lock: &str, package: &str) -> String {
    let name = format!("name = \"{package}\"");
    let version = lock.lines().skip_while(|line| *line != name).nth(1);
    let version = version.and_then(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    format!("{package} {}", version.unwrap_or("of an unknown version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_the_lock_file() {
        let lock = "[[package]]\nname = \"rusqlite-extra\"\nversion = \"9.9.9\"\n\n[[package]]\nname = \"rusqlite\"\nversion = \"0.41.1\"\n";
        assert_eq!(version_in(lock, "rusqlite"), "rusqlite 0.41.1");
        assert_eq!(version_in(lock, "sqlx"), "sqlx of an unknown version");
    }
}
