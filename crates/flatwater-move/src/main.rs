//! The command: `flatwater-move copy app.db rqlite://10.0.0.1:4001`, then `flatwater-move switch` with the same two.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use flatwater::{Database, Options, Result, Session};
use flatwater_move::Move;
use flatwater_remote::{Level, Remote, is_address};

/// Moves a database from a file to a server, or back, while programs write to it.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Copies all rows, and catches up with what programs change. May be repeated.
    Copy(Sides),
    /// Makes the target the database: the source refuses writes from here on.
    Switch(Sides),
    /// Removes from the source what a copy or a switch has added to it.
    GiveUp(Sides),
}

#[derive(clap::Args)]
struct Sides {
    /// The path of a file, or the address of a server.
    from: String,
    /// The path of a file, or the address of a server.
    to: String,
}

/// A side of the move.
enum Opened {
    File(Database, String),
    Server(Remote),
}

impl Opened {
    /// Opens a place, whose reads are the newest. A file that is not there is made if `creates`.
    fn open(place: &str, creates: bool) -> Result<Self> {
        if is_address(place) {
            return Ok(Self::Server(Remote::connect(place)?.with_level(Level::Linearizable)));
        }
        let file = Options::new(place).create(creates).open().wait()?;
        Ok(Self::File(file, place.to_owned()))
    }

    fn session(&self) -> &Session {
        match self {
            Self::File(file, _) => file,
            Self::Server(server) => server,
        }
    }

    /// How it is called, without a secret.
    fn name(&self) -> &str {
        match self {
            Self::File(_, path) => path,
            Self::Server(server) => server.name(),
        }
    }

    fn close(self) -> Result<()> {
        match self {
            Self::File(file, _) => file.close().wait(),
            Self::Server(server) => server.close().wait(),
        }
    }
}

fn run(step: Step) -> Result<()> {
    let (Step::Copy(sides) | Step::Switch(sides) | Step::GiveUp(sides)) = &step;
    let (from, to) = (Opened::open(&sides.from, false)?, Opened::open(&sides.to, true)?);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without timers");
    let moving = Move::new(from.session(), to.session());
    match &step {
        Step::Copy(_) => {
            let done = runtime.block_on(moving.copy())?;
            println!(
                "{} tables and {} rows copied to {}; {} changes caught up with, {} rows repaired",
                done.tables,
                done.rows,
                to.name(),
                done.changes,
                done.repaired
            );
            if done.differing > 0 {
                println!(
                    "{} rows differ still: programs write, or the target refuses them, which the switch will say",
                    done.differing
                );
            }
        }
        Step::Switch(_) => {
            let done = runtime.block_on(moving.switch(to.name()))?;
            println!("the database is {} now; {} changes, {} rows repaired", to.name(), done.changes, done.repaired);
        }
        Step::GiveUp(_) => {
            runtime.block_on(moving.give_up())?;
            println!("{} is as it was", from.name());
        }
    }
    to.close()?;
    from.close()
}

fn main() -> ExitCode {
    match run(Arguments::parse().step) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
