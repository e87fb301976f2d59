//! Child processes that write to one file, for tests of how they take turns.
//!
//! The children are this program, which runs the ignored test below: each writes until it finds the file `stop`, and then
//! closes the database. What they have committed is counted in the database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flatwater::options::Fairness;
use flatwater::{Database, Options};
use flatwater_sqlite::TurnFile;

use crate::support::{Killed, TestFile, as_child, integrity, wait_until};

const PATH: &str = "FLATWATER_TURNS_PATH";
const FAIRNESS: &str = "FLATWATER_TURNS_FAIRNESS";
/// More than fit into a turn.
pub(crate) const SOME: i64 = 200;

#[test]
#[ignore = "runs as a child of other tests"]
fn writes_until_it_is_told_to_stop() {
    let path = PathBuf::from(std::env::var_os(PATH).expect("the parent says where"));
    let fairness = if std::env::var_os(FAIRNESS).is_some() { Fairness::Off } else { Fairness::Auto };
    let stop = path.with_file_name("stop");
    let db = Options::new(&path).tuning(|t| t.fairness(fairness)).open().wait().unwrap();
    let me = i64::from(std::process::id());
    while !stop.exists() {
        for _ in 0..10 {
            db.execute("INSERT INTO turns VALUES (?)", (me,)).wait().unwrap();
        }
    }
    db.close().wait().unwrap();
}

pub(crate) struct Writers {
    pub(crate) file: TestFile,
    /// A program that opens or closes the file as the only one takes its lock. This one stays.
    plain: rusqlite::Connection,
    pub(crate) children: Vec<Killed>,
}

impl Writers {
    pub(crate) fn start(count: usize) -> Self {
        let file = TestFile::new();
        let plain = file.plain();
        plain.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE turns (who)").unwrap();
        let mut writers = Self { file, plain, children: Vec::new() };
        (0..count).for_each(|_| writers.start_another(true));
        writers
    }

    pub(crate) fn start_another(&mut self, is_fair: bool) {
        let mut child = self.command();
        if !is_fair {
            child.env(FAIRNESS, "off");
        }
        self.children.push(Killed(child.spawn().unwrap()));
    }

    /// Starts one as another user, and returns its number.
    #[cfg(unix)]
    pub(crate) fn start_as(&mut self, user: u32) -> u32 {
        use std::os::unix::process::CommandExt;
        let child = self.command().uid(user).gid(user).spawn().unwrap();
        let number = child.id();
        self.children.push(Killed(child));
        number
    }

    fn command(&self) -> Command {
        let mut child = as_child("processes::writers::writes_until_it_is_told_to_stop");
        child.env(PATH, self.file.path()).stdout(Stdio::null());
        child
    }

    pub(crate) fn turn_file(&self) -> PathBuf {
        let mut name = self.file.path().into_os_string();
        name.push("-turn");
        name.into()
    }

    pub(crate) fn counts(&self) -> HashMap<i64, i64> {
        let mut counts = self.plain.prepare("SELECT who, count(*) FROM turns GROUP BY who").unwrap();
        counts.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
    }

    /// Waits until each of these children has committed some more writes.
    pub(crate) fn progress(&mut self, of: &[usize]) {
        let ids: Vec<_> = of.iter().map(|child| i64::from(self.children[*child].0.id())).collect();
        let before = self.counts();
        let count = |counts: &HashMap<i64, i64>, id| counts.get(id).copied().unwrap_or(0);
        wait_until(|| {
            for child in of {
                assert!(self.children[*child].0.try_wait().unwrap().is_none(), "a child has ended");
            }
            let now = self.counts();
            ids.iter().all(|id| count(&now, id) - count(&before, id) >= SOME)
        });
    }

    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.children.len()).collect()
    }

    pub(crate) fn signal(&self, child: usize, signal: &str) {
        let id = self.children[child].0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Stops a child, and waits until it has stopped.
    pub(crate) fn stops(&self, child: usize) {
        self.signal(child, "-STOP");
        let stat = format!("/proc/{}/stat", self.children[child].0.id());
        wait_until(|| {
            std::fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().trim_start().starts_with('T')
        });
    }

    /// Ends all, each with a clean close. The database is sound, and no file of turns is left.
    pub(crate) fn end(mut self) -> TestFile {
        std::fs::write(self.file.path().with_file_name("stop"), "").unwrap();
        for child in &mut self.children {
            assert!(child.0.wait().unwrap().success());
        }
        assert_eq!(integrity(&self.plain), "ok");
        assert!(!self.turn_file().is_file(), "the last close leaves it");
        self.file
    }

    /// Ends the use of the file of turns, as a close does. Its lock is not left to the drop: a program that another test starts at that moment has what
    /// this process has open, until it has become that program.
    pub(crate) fn lets_go(&self, file: &TurnFile) {
        file.remove_if_last(&self.turn_file());
    }
}

/// Returns true if the file of turns is there, whole.
pub(crate) fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() >= 4096)
}

/// Writes in this process until the condition holds.
pub(crate) fn writes_until(db: &Database, condition: impl Fn() -> bool) {
    wait_until(|| {
        for _ in 0..10 {
            db.execute("INSERT INTO turns VALUES (0)", ()).wait().unwrap();
        }
        condition()
    });
}

/// Returns true if a process has this file open.
pub(crate) fn has_open(process: u32, file: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    open.flatten().any(|link| std::fs::read_link(link.path()).is_ok_and(|path| path == file))
}
