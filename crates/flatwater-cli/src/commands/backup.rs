//! `flatwater backup`: a copy of a database that programs use.
//!
//! Owns: how far the copy is, which the backup tells; that of a compact one it reads from the length of the file that it becomes. Runs
//! on the main thread; a compact copy is waited for on another. Leaves out: copying.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use flatwater::calls::BackupProgress;
use flatwater::{Call, Database};
use indicatif::ProgressBar;

use crate::failure::Outcome;
use crate::files::partial_files;
use crate::interrupt;
use crate::place::Place;
use crate::progress;

/// Copy a database into a new file, of one point in time, while programs write
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,

    /// The copy, which must not exist
    target: PathBuf,

    /// Leave out free pages. Rowids may change where there is no INTEGER PRIMARY KEY
    #[arg(long)]
    compact: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let db = arguments.place.reader()?;
    interrupt::closes(&db)?;
    let bytes = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let bytes: u64 = db.query_value(bytes, ()).wait()?;
    let bar = progress::bytes(Some(bytes), "copying");
    let target = &arguments.target;
    let copied = if arguments.compact {
        watch(db.vacuum_into(target), target, &bar)
    } else {
        let told = bar.clone();
        let copied = move |pages: BackupProgress| {
            let copied = u64::from(pages.total_pages - pages.remaining_pages);
            told.set_position(bytes * copied / u64::from(pages.total_pages).max(1));
        };
        db.backup(target).progress(copied).wait().map_err(Into::into)
    };
    bar.finish_and_clear();
    copied?;
    eprintln!("{} bytes in {}", length(target), target.display());
    close(&db)
}

fn close(db: &Database) -> Outcome {
    Ok(db.close().wait()?)
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Waits for a compact copy, and moves the bar meanwhile.
fn watch(call: Call<()>, target: &Path, bar: &ProgressBar) -> Outcome {
    let (send, ended) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || send.send(call.wait()));
        loop {
            match ended.recv_timeout(Duration::from_millis(100)) {
                Ok(result) => return Ok(result?),
                Err(RecvTimeoutError::Timeout) => {
                    bar.set_position(partial_files(target).iter().map(|file| file.bytes).max().unwrap_or(0));
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("the thread sends before it ends"),
            }
        }
    })
}
