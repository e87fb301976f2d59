//! The peers `remote-*`: clients of servers, on the loopback interface.
//!
//! Owns: the command line, the list of lanes, and the JSON on standard output. The cluster is a stand-in that runs as a process of its own,
//! which is this program again. Leaves out: the lanes, and what each peer sends.

mod client;
mod lanes;
mod servers;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use flatwater::rusqlite::Connection;
use lab_kit::{Asked, exit, say, version_in};
use serde_json::{Value, json};

use crate::client::Kind;
use crate::lanes::Lane;

/// Measures clients of a cluster
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    asked: Asked,
}

/// Which of this program's peers it is, if none is named.
const USUAL: &str = "remote-flatwater";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(servers::CHILD) {
        rqlite_double::run();
        return ExitCode::SUCCESS;
    }
    exit(answer(&Arguments::parse().asked).and_then(|answer| say(&answer)))
}

fn answer(asked: &Asked) -> Result<Value> {
    let name = asked.name.as_deref().unwrap_or(USUAL);
    let kind = Kind::of(name)?;
    let mut answer = match &asked.lane {
        Some(lane) => {
            let Some(found) = Lane::all().into_iter().find(|known| known.name() == *lane) else {
                bail!("{name} has no lane {lane:?}")
            };
            lanes::run(found, kind, asked.quick)?
        }
        None => json!({ "lanes": Lane::all().into_iter().map(|lane| lane.info()).collect::<Vec<_>>() }),
    };
    let (sqlite, compile_options) = sqlite()?;
    let own = if kind == Kind::Flatwater { "flatwater-remote" } else { "hyper" };
    // The list says `version`, and a trial `peer_version`.
    let about = json!({ "peer": name, "sqlite": sqlite, "compile_options": compile_options });
    answer.as_object_mut().context("an answer is an object")?.extend(about.as_object().cloned().unwrap_or_default());
    let version = version_in(include_str!("../Cargo.lock"), own);
    answer[if asked.lane.is_some() { "peer_version" } else { "version" }] = version.into();
    Ok(answer)
}

/// SQLite's version and compile options: that of the stand-in.
fn sqlite() -> Result<(String, Vec<String>)> {
    let connection = Connection::open_in_memory()?;
    let version = connection.query_row("SELECT sqlite_version()", [], |row| row.get(0))?;
    let mut statement = connection.prepare("PRAGMA compile_options")?;
    let options = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok((version, options))
}
