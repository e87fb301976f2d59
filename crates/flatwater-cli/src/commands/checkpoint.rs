//! `flatwater checkpoint`: copies the WAL into the database.
//!
//! Owns: the names of the modes. Leaves out: the copying, which waits for readers and writers as its mode says.

use clap::ValueEnum;
use flatwater::calls::CheckpointMode;

use crate::failure::Outcome;
use crate::interrupt;
use crate::place::Place;

/// Copy the WAL into the database
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// What is waited for, and what happens to the WAL
    #[arg(long, default_value = "truncate")]
    mode: Mode,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Wait for nobody, and copy what can be copied
    Passive,
    /// Wait for writers and readers, and copy all
    Full,
    /// And have the WAL begin anew
    Restart,
    /// And make the WAL empty
    Truncate,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mode = match arguments.mode {
        Mode::Passive => CheckpointMode::Passive,
        Mode::Full => CheckpointMode::Full,
        Mode::Restart => CheckpointMode::Restart,
        Mode::Truncate => CheckpointMode::Truncate,
    };
    let db = arguments.place.writer(false)?;
    interrupt::closes(&db)?;
    let done = db.checkpoint(mode).wait()?;
    say!("{} of {} frames are copied", done.copied, done.frames);
    Ok(db.close().wait()?)
}
