//! What programs with the option `observe` show of a database, in files beside it.
//!
//! Owns: finding the files, and reading one as a whole record. Runs where it is called; blocks on the file system. Invariants: the only
//! lock that is asked for is that of a file of figures, shared and for a moment, which its program has while it lives; a record that is
//! just being written is read again, since it does not fit its hash. Leaves out: writing them, which the library does, and showing them.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use sha2::{Digest, Sha256};

const HEAD: &str = "flatwater observe ";
const VERSION: &str = "1";
/// No record is longer.
const MOST_BYTES: u64 = 1 << 20;
/// How often a record is read that is not whole.
const TRIES: usize = 100;

/// A file of figures.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) path: PathBuf,
    pub(crate) state: State,
}

#[derive(Debug)]
pub(crate) enum State {
    /// A program has it, and wrote this.
    Lives(Record),
    /// Its program is gone.
    Left,
    /// It cannot be read: why.
    Unread(String),
}

/// The figures of one program, and when it wrote them.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) figures: Value,
    pub(crate) at: SystemTime,
}

impl Record {
    /// Returns a figure; one that is not there is zero.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.figures[name].as_u64().unwrap_or(0)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.figures[name].as_str()
    }

    /// The kinds of calls that were made.
    pub(crate) fn calls(&self) -> &[Value] {
        self.figures["calls"].as_array().map_or(&[], Vec::as_slice)
    }

    /// How many calls were answered.
    pub(crate) fn answered(&self) -> u64 {
        self.calls().iter().map(|calls| calls["count"].as_u64().unwrap_or(0)).sum()
    }
}

/// Returns the files of figures beside a database, in the order of their names.
pub(crate) fn beside(database: &Path) -> Vec<Shown> {
    let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else { return Vec::new() };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let head = format!("{}-observe-", name.to_string_lossy());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |entry: &std::fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(&head) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let paths = entries.filter(is_one).map(|entry| entry.path());
    let mut shown: Vec<Shown> = paths.filter_map(|path| Some(Shown { state: state(&path)?, path })).collect();
    shown.sort_by(|one, other| one.path.cmp(&other.path));
    shown
}

/// Returns `None` for a file that is something else, or has just gone.
fn state(path: &Path) -> Option<State> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(State::Unread(error.to_string())),
    };
    let mut bytes = Vec::new();
    for _ in 0..TRIES {
        bytes.clear();
        if let Err(error) = file.rewind().and_then(|()| (&file).take(MOST_BYTES).read_to_end(&mut bytes)) {
            return Some(State::Unread(error.to_string()));
        }
        if !bytes.starts_with(HEAD.as_bytes()) {
            return None;
        }
        if file.try_lock_shared().is_ok() {
            return Some(State::Left);
        }
        match std::str::from_utf8(&bytes).map_err(|_| None).and_then(parse) {
            Ok(figures) => {
                let at = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
                return Some(State::Lives(Record { figures, at }));
            }
            Err(Some(version)) => return Some(State::Unread(format!("it is of version {version}"))),
            Err(None) => std::thread::yield_now(),
        }
    }
    Some(State::Unread("it is not whole".to_owned()))
}

/// Reads a file. An error is the version, if it is another one, or nothing if the record is not whole.
fn parse(text: &str) -> Result<Value, Option<String>> {
    let (head, record) = text.split_once('\n').ok_or(None)?;
    let mut words = head.strip_prefix(HEAD).ok_or(None)?.split(' ');
    let version = words.next().ok_or(None)?;
    if version != VERSION {
        return Err(Some(version.to_owned()));
    }
    let length: usize = words.next().and_then(|length| length.parse().ok()).ok_or(None)?;
    let record = record.get(..length).ok_or(None)?;
    let hash = Sha256::digest(record).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if words.next() != Some(&*hash) {
        return Err(None);
    }
    serde_json::from_str(record).map_err(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(record: &str) -> String {
        let hash = Sha256::digest(record).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("flatwater observe 1 {} {hash}\n{record}the rest of a longer one", record.len())
    }

    /// As the first version wrote it.
    const VERSION_1: &str =
        "flatwater observe 1 13 31c4b7b7d3630475e9ec043781472385f834daf34cd033e2e696cc62f84bcfbe\n{\"process\":7}";

    #[test]
    fn a_record_that_is_kept_is_read() {
        assert_eq!(parse(VERSION_1).unwrap()["process"], 7);
    }

    #[test]
    fn a_record_that_is_being_written_is_never_read_in_part() {
        use std::io::Write;

        let folder = tempfile::tempdir().unwrap();
        let (database, path) = (folder.path().join("a.db"), folder.path().join("a.db-observe-x"));
        let record = |letter: &str, length: usize| written(&format!(r#"{{"program":"{}"}}"#, letter.repeat(length)));
        let records = [record("a", 9_000), record("b", 3_000)];
        std::fs::write(&path, &records[0]).unwrap();
        let owner = File::options().write(true).open(&path).unwrap();
        owner.lock().unwrap();
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| {
                for record in records.iter().cycle().take(2_000) {
                    (&owner).rewind().unwrap();
                    (&owner).write_all(record.as_bytes()).unwrap();
                }
            });
            while !writes.is_finished() {
                match &beside(&database)[0].state {
                    State::Lives(record) => {
                        let program = record.text("program").unwrap();
                        assert!(program == "a".repeat(9_000) || program == "b".repeat(3_000), "{program}");
                    }
                    // It was written each time that it was read.
                    State::Unread(why) => assert_eq!(why, "it is not whole"),
                    State::Left => panic!("it is locked"),
                }
            }
        });
        assert!(matches!(&beside(&database)[0].state, State::Lives(_)));
    }

    #[test]
    fn a_record_is_read_when_it_is_whole() {
        let whole = written(r#"{"process":7}"#);
        assert_eq!(parse(&whole).unwrap()["process"], 7);
        assert_eq!(parse(&whole.replace(":7", ":8")), Err(None));
        assert_eq!(parse(&whole[..whole.len() / 2]), Err(None));
        assert_eq!(parse("flatwater observe 2 what comes"), Err(None));
        assert_eq!(parse("flatwater observe 2 of another form\n"), Err(Some("2".to_owned())));
    }

    #[test]
    fn a_file_without_a_lock_is_left_and_another_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        std::fs::write(folder.path().join("a.db-observe-1"), written("{}")).unwrap();
        std::fs::write(folder.path().join("a.db-observe-2"), "SQLite format 3").unwrap();
        let path = folder.path().join("a.db-observe-3");
        std::fs::write(&path, written(r#"{"process":7,"calls":[{"count":3},{"count":4}]}"#)).unwrap();
        let owner = File::open(&path).unwrap();
        owner.lock().unwrap();
        let shown = beside(&database);
        assert!(matches!(&shown[0].state, State::Left), "{shown:?}");
        let State::Lives(record) = &shown[1].state else { panic!("{shown:?}") };
        assert_eq!((record.number("process"), record.answered(), shown.len()), (7, 7, 2));
    }
}
