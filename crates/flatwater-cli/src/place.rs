//! Where a database is, and how the commands open it.
//!
//! Owns: the arguments that all commands share, and the options they become. Runs on the main thread, and waits there. Invariants: a
//! file keeps its journal mode; a file that is not there is made only if the command says so; nothing ends because its user is slow.
//! Leaves out: which statements need which handle (`sql::runner`).

use std::path::PathBuf;
use std::time::Duration;

use flatwater::options::{Journal, Key};
use flatwater::{Database, Options};

use crate::failure::{Failure, Outcome};

/// So long a stream, a snapshot or a transaction may wait for the user.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(clap::Args, Clone)]
pub(crate) struct Place {
    /// The database: a path, `:memory:`, or a URI such as `file:app.db?mode=ro`
    pub(crate) path: PathBuf,

    /// How many seconds to wait for locks of other processes
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = seconds)]
    busy_timeout: f64,

    /// A file with the passphrase of an encrypted database
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Allow a file on a network file system, if only this machine uses it
    #[arg(long)]
    allow_network_filesystem: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1e9).contains(&number) { Ok(number) } else { Err("not a time in seconds".to_owned()) }
}

impl Place {
    /// Returns the options for a file that is there.
    pub(crate) fn options(&self) -> Outcome<Options> {
        let allows = self.allow_network_filesystem;
        let options = Options::new(&self.path)
            .create(false)
            .journal(Journal::Keep)
            .busy_timeout(Duration::from_secs_f64(self.busy_timeout))
            .optimize_every(None)
            .tuning(|tuning| tuning.close_wait(Duration::from_secs(1)).transaction_idle(PATIENCE))
            .tuning(|tuning| tuning.stream_idle(PATIENCE).snapshot_age(PATIENCE).allow_network_filesystem(allows));
        let Some(file) = &self.key_file else { return Ok(options) };
        let key = std::fs::read_to_string(file).map_err(Failure::system(format!("reading {}", file.display())))?;
        Ok(options.key(Key::text(key.trim_end_matches(['\r', '\n']))))
    }

    /// Opens the file to read it.
    pub(crate) fn reader(&self) -> Outcome<Database> {
        Ok(self.options()?.read_only(true).open().wait()?)
    }

    /// Opens the file to read and write it. If it is not there, it is made in WAL mode if `creates`.
    pub(crate) fn writer(&self, creates: bool) -> Outcome<Database> {
        let makes = creates && !self.exists();
        let options = if makes { self.options()?.create(true).journal(Journal::Wal) } else { self.options()? };
        Ok(options.open().wait()?)
    }

    /// Returns whether there is a file. A URI is taken to lead to one.
    pub(crate) fn exists(&self) -> bool {
        self.is_uri() || self.path.exists()
    }

    pub(crate) fn is_uri(&self) -> bool {
        self.path.to_str().is_some_and(|path| path.starts_with("file:"))
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        self.path.as_os_str() == ":memory:"
    }
}
