//! `flatwater-torture`: tries to break Flatwater, and reports what it did, how often, and what it found.
//!
//! `run` runs the acts in turn until the time is over. Each round of an act is a separate process (`round`), so that a
//! crash, an abort and a hang are findings too. A round may start further processes (`part`).

mod acts;
mod board;
mod checks;
mod faults;
mod finding;
mod gauge;
mod ledger;
mod leftovers;
mod parts;
mod plain;
mod readme;
mod report;
mod round;
mod runner;
mod writes;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take the acts in turn until the time is over
    Run(runner::RunArgs),
    /// One round of one act, as `run` starts it; repeats a finding
    Round(runner::RoundArgs),
    /// A process of a round
    #[command(hide = true)]
    Part {
        /// Its name
        name: String,
        /// What its round tells it
        args: Vec<String>,
    },
    /// Write the table of a run into the README
    Readme(readme::ReadmeArgs),
    /// Say what each act does
    List,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => runner::run(&args),
        Command::Round(args) => runner::one_round(&args),
        Command::Part { name, args } => acts::part(&name, &args),
        Command::Readme(args) => readme::write_table(&args),
        Command::List => {
            for act in acts::ALL {
                println!("{:16} {}", act.name, act.about);
            }
            ExitCode::SUCCESS
        }
    }
}
