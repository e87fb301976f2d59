//! The file beside a database in which this process shows its figures, for `flatwater top`.
//!
//! Owns: the file `<db>-observe-RANDOM`: making it with the rights of the database and a lock, writing one record over the one before,
//! and removing it; and removing those that killed processes have left. Runs on `fw-check`, and at last on the thread that closes;
//! blocks on the file system. Invariants: who has such a file has it locked, and the lock ends with the process, so one without a lock
//! is left over; nothing is mapped, so a full disk or a file that is cut short is a failed call; a record that is not whole does not fit its
//! hash; a forked child removes nothing. Leaves out: what a record says, and when one is written (`engine::observe`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use flatwater_sqlite::Origin;
use sha2::{Digest, Sha256};

use super::identity::FileId;
use crate::events;
use flatwater_base::thread::lock;

/// Between the name of the database and six letters.
const BETWEEN: &str = "-observe-";
/// How the file begins. The version follows, and the length and the hash of the record, which is on the other lines.
const HEAD: &str = "flatwater observe ";
const VERSION: u32 = 1;
/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// The file of one open database.
pub(crate) struct ObservedFile {
    database: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// `None` before the first record, while the database is parked, and after a failure.
    file: Option<SideFile>,
    again_at: Instant,
    is_over: bool,
    has_failed: bool,
}

impl ObservedFile {
    /// Makes no file yet.
    pub(crate) fn new(database: &Path) -> Self {
        let state = State { file: None, again_at: Instant::now(), is_over: false, has_failed: false };
        Self { database: database.to_owned(), state: Mutex::new(state) }
    }

    /// Writes a record over the one before. If the file is gone it is made again; after a failure nothing is written for a while.
    pub(crate) fn write(&self, record: &str) {
        let mut state = lock(&self.state);
        if state.is_over || Instant::now() < state.again_at {
            return;
        }
        let file = state.file.take().filter(SideFile::is_at_its_path);
        let file = file.map_or_else(|| SideFile::make(&self.database), Ok);
        match file.and_then(|file| file.write(record).map(|()| file)) {
            Ok(file) => state.file = Some(file),
            Err(error) => {
                state.again_at = Instant::now() + AFTER_FAILURE;
                let is_first = !std::mem::replace(&mut state.has_failed, true);
                drop(state);
                if is_first {
                    events::not_observed(&self.database, &error);
                }
            }
        }
    }

    /// Removes the file; for good, or until the next record.
    pub(crate) fn let_go(&self, for_good: bool) {
        let mut state = lock(&self.state);
        state.is_over |= for_good;
        let file = state.file.take();
        drop(state);
        drop(file);
    }
}

/// Dropping it removes the file.
struct SideFile {
    file: File,
    path: PathBuf,
    origin: Origin,
}

impl SideFile {
    fn make(database: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (database.parent(), database.file_name()) else {
            return Err(ErrorKind::NotFound.into());
        };
        let mut prefix = name.to_owned();
        prefix.push(BETWEEN);
        remove_left(folder, &prefix);
        let (file, path) = tempfile::Builder::new().prefix(&prefix).tempfile_in(folder)?.keep()?;
        let made = Self { file, path, origin: Origin::here() };
        // A process that looks for files that are left has it locked for a moment.
        made.file.try_lock()?;
        give_rights(&made.file, database)?;
        Ok(made)
    }

    fn is_at_its_path(&self) -> bool {
        self.file.metadata().is_ok_and(|own| FileId::of(&self.path) == FileId::of_metadata(&own, &self.path))
    }

    /// Writes all in one call. A reader that sees a part of it finds that the hash does not fit, and reads again.
    fn write(&self, record: &str) -> io::Result<()> {
        let hash = Sha256::digest(record).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let text = format!("{HEAD}{VERSION} {} {hash}\n{record}", record.len());
        let mut file = &self.file;
        file.rewind()?;
        file.write_all(text.as_bytes())
    }
}

impl Drop for SideFile {
    fn drop(&mut self) {
        if !self.origin.is_inherited() && self.is_at_its_path() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the files of processes that are gone. A file that does not begin as ours do is left alone, whatever its name.
fn remove_left(folder: &Path, prefix: &OsStr) {
    let names_one = |name: &OsString| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes());
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !names_one(&entry.file_name()) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        if File::open(&path).is_ok_and(|file| is_ours(&file) && file.try_lock().is_ok()) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn is_ours(mut file: &File) -> bool {
    let mut head = [0; HEAD.len()];
    file.read_exact(&mut head).is_ok() && head == HEAD.as_bytes()
}

/// Gives the file the rights and the owner of the database, because the SQL in it may have literals. If that owner cannot be set, only
/// this user may read it.
#[cfg(unix)]
fn give_rights(file: &File, database: &Path) -> io::Result<()> {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

    let of = std::fs::metadata(database)?;
    let has_owner = fchown(file, Some(of.uid()), Some(of.gid())).is_ok();
    file.set_permissions(Permissions::from_mode(of.mode() & if has_owner { 0o666 } else { 0o600 }))
}

#[cfg(not(unix))]
fn give_rights(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("a.db");
        std::fs::write(&database, "").unwrap();
        std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o640)).unwrap();
        (directory, database)
    }

    fn beside(database: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(database.parent().unwrap()).unwrap();
        entries.map(|entry| entry.unwrap().path()).filter(|path| path != database).collect()
    }

    #[test]
    fn a_record_is_written_over_the_one_before_and_the_file_goes_with_its_owner() {
        let (_directory, database) = place();
        let observed = ObservedFile::new(&database);
        observed.write("a long record");
        observed.write("short");
        let files = beside(&database);
        let text = std::fs::read_to_string(&files[0]).unwrap();
        assert!(text.starts_with("flatwater observe 1 5 ") && text.split_once('\n').unwrap().1.starts_with("short"));
        assert_eq!(std::fs::metadata(&files[0]).unwrap().mode() & 0o777, 0o640);
        assert!(File::open(&files[0]).unwrap().try_lock_shared().is_err(), "it is locked");
        observed.let_go(false);
        assert!(beside(&database).is_empty());
        observed.write("");
        assert_eq!(beside(&database).len(), 1);
        observed.let_go(true);
        observed.write("");
        assert!(beside(&database).is_empty());
    }

    #[test]
    fn a_file_that_is_gone_is_made_again_and_another_one_at_its_path_stays() {
        let (_directory, database) = place();
        let observed = ObservedFile::new(&database);
        observed.write("");
        let first = beside(&database).remove(0);
        std::fs::remove_file(&first).unwrap();
        std::fs::write(&first, "another").unwrap();
        observed.write("");
        assert_eq!(beside(&database).len(), 2);
        drop(observed);
        assert_eq!(beside(&database), [first]);
    }

    #[test]
    fn what_is_left_is_removed_and_what_is_in_use_or_not_ours_stays() {
        let (directory, database) = place();
        let lives = ObservedFile::new(&database);
        lives.write("");
        let [left, of_a_user] = ["a.db-observe-left00", "a.db-observe-notes"].map(|name| directory.path().join(name));
        std::fs::write(&left, "flatwater observe 7 0 0\n").unwrap();
        std::fs::write(&of_a_user, "SQLite format 3").unwrap();
        std::os::unix::fs::symlink(&database, directory.path().join("a.db-observe-linked")).unwrap();
        let observed = ObservedFile::new(&database);
        observed.write("");
        assert!(!left.exists() && of_a_user.exists() && database.exists());
        assert_eq!(beside(&database).len(), 4, "two records, a file of a user, a link");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_tried_again_later() {
        let observed = ObservedFile::new(Path::new("/nonexistent/a.db"));
        observed.write("a record");
        let again_at = lock(&observed.state).again_at;
        assert!(lock(&observed.state).has_failed && again_at > Instant::now());
        observed.write("it is not tried");
        assert_eq!(lock(&observed.state).again_at, again_at);
    }
}
