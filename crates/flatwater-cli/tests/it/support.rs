//! What the tests share: a folder with a database, and the command in it.

use std::path::PathBuf;
use std::process::{Command, Output};

use flatwater::{Database, Options};
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

/// What a command has printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Ended {
    /// The output of a command that has succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The errors of a command that has failed with this code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.err
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with `app.db`, in which this SQL was run.
    pub(crate) fn with(sql: &str) -> Self {
        let place = Self::new();
        let db = place.open();
        db.execute_script(sql).wait().unwrap();
        db.close().wait().unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn open(&self) -> Database {
        Options::new(self.path("app.db")).open().wait().unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flatwater"));
        command.current_dir(self.folder.path()).env("XDG_STATE_HOME", self.path("state")).env_remove("NO_COLOR");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(assert_cmd::Command::from_std(self.with_arguments(arguments)).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = assert_cmd::Command::from_std(self.with_arguments(arguments));
        ended(command.write_stdin(input.to_owned()).output().unwrap())
    }

    fn with_arguments(&self, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(arguments);
        command
    }
}

fn ended(output: Output) -> Ended {
    Ended {
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap_or(-1),
    }
}
