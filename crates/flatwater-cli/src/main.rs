//! The command `flatwater`: its subcommands, and which file of `commands` runs each.
//!
//! Owns: the list of subcommands, and the exit code. Runs on the main thread. Leaves out: everything that a subcommand does.

/// Prints a line, as `println`, but for a reader that went away.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))
    };
}

mod checking;
mod commands;
mod failure;
mod figures;
mod files;
mod generating;
mod interrupt;
mod load;
mod output;
mod place;
mod progress;
mod shell;
mod sql;
mod top;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    backup, bench, check, check_sql, checkpoint, completions, doctor, export, import, live, man, migrate, query, types,
};
use crate::failure::{Failure, Outcome};

/// Queries, checks, backups, imports and a shell for SQLite databases, also while programs use them.
#[derive(Parser)]
#[command(name = "flatwater", version, after_help = failure::EXIT_CODES, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Query(query::Arguments),
    Shell(shell::Arguments),
    Live(live::Arguments),
    Top(top::Arguments),
    Check(check::Arguments),
    CheckSql(check_sql::Arguments),
    Types(types::Arguments),
    Doctor(doctor::Arguments),
    Backup(backup::Arguments),
    Checkpoint(checkpoint::Arguments),
    Migrate(migrate::Arguments),
    Import(import::Arguments),
    Export(export::Arguments),
    Bench(bench::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Query(arguments) => query::run(&arguments),
        Command::Shell(arguments) => shell::run(&arguments),
        Command::Live(arguments) => live::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::CheckSql(arguments) => check_sql::run(&arguments),
        Command::Types(arguments) => types::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Checkpoint(arguments) => checkpoint::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, &mut Arguments::command()),
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        // What was interrupted fails for that reason, whatever it says.
        Err(_) if interrupt::came() => Failure::Interrupted.report(),
        Err(failure) => failure.report(),
    }
}
