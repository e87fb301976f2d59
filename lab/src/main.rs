//! The command line of the lab. Exit code 0: everything ran; 1: something did not; 130: interrupted.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use flatwater_lab::commands::{ab, busy, experiment, list, readme, report, run};
use flatwater_lab::figures::result::Measured;
use flatwater_lab::measuring::process::Interrupt;
use flatwater_lab::verdicts::compare::{self, Request};

/// Measures Flatwater beside its peers and decides whether a change made a difference
#[derive(Parser)]
#[command(name = "flatwater-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure peers beside each other
    Run(run::RunArgs),
    /// Measure two revisions of Flatwater beside each other and give a verdict per lane and metric
    Ab(ab::AbArgs),
    /// Compare two results, or two peers of one
    Compare(CompareArgs),
    /// Make one page of results and experiments
    Report(report::ReportArgs),
    /// Begin or finish the record of an experiment
    Experiment(experiment::ExperimentArgs),
    /// Print the tables of several processes that write to one file
    Busy(busy::BusyArgs),
    /// Write the README's chart and the tables of the page of speed from committed results
    ReadmeTable(readme::ReadmeArgs),
    /// Show the lanes and the peers
    List(list::ListArgs),
}

#[derive(Args)]
struct CompareArgs {
    /// The result of the base; alone, the result that has both sides
    base_file: PathBuf,
    /// The result of the candidate
    candidate_file: Option<PathBuf>,
    /// The peer of the base
    #[arg(long, value_name = "PEER", requires = "candidate")]
    base: Option<String>,
    /// The peer of the candidate
    #[arg(long, value_name = "PEER", requires = "base")]
    candidate: Option<String>,
    /// Lanes that the change cannot reach: if one gets worse the change is refused
    #[arg(long = "control", value_name = "LANES", value_delimiter = ',')]
    controls: Vec<String>,
    /// Compare different lanes, machines and builds too
    #[arg(long)]
    anyway: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&error),
    };
    match obey(cli.command, &interrupt) {
        _ if interrupt.pressed() => ExitCode::from(130),
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

fn obey(command: Command, interrupt: &Interrupt) -> Result<bool> {
    match command {
        Command::Run(args) => run::run(&args, interrupt),
        Command::Ab(args) => ab::ab(&args, interrupt),
        Command::Compare(args) => compare(args),
        Command::Report(args) => report::report(&args, interrupt),
        Command::Experiment(args) => experiment::experiment(&args),
        Command::Busy(args) => busy::busy(&args),
        Command::ReadmeTable(args) => readme::readme_table(&args),
        Command::List(args) => list::list(&args, interrupt),
    }
}

fn compare(args: CompareArgs) -> Result<bool> {
    let CompareArgs { base_file, candidate_file, base, candidate, controls, anyway, json } = args;
    let request = Request { base, candidate, controls, anyway };
    let one = Measured::read(&base_file)?;
    let comparisons = match candidate_file {
        Some(path) => compare::files(&one, &Measured::read(&path)?, &request)?,
        None => compare::files(&one, &one, &request)?,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&comparisons)?);
        return Ok(true);
    }
    for comparison in comparisons {
        println!("{comparison}\n");
    }
    Ok(true)
}
