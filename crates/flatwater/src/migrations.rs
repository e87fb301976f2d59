//! The list of migrations: scripts that bring a database to the schema a program needs; and which is next.
//!
//! Owns: reading a list from memory or from a folder, checking its names, the checksums, in which line of a script an error is, and
//! the decision from a list and the history of a database. Runs on callers' threads; only `from_dir` reads files. Invariants: the
//! steps of a list have different versions and are in their order; a text that was changed after it was applied, or a history that
//! the list does not have, is an error and not passed over. Leaves out: reading the history, and running migrations.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha384};

use flatwater_base::error::cause::caused_by;
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::growth_counter::step;

/// The line with which a script begins that must run outside of a transaction.
const NO_TRANSACTION: &str = "-- no-transaction";

/// The migrations of a program: SQL scripts with names such as `001_init`, in the order of their numbers.
///
/// ```
/// use flatwater::{Migrations, Options};
///
/// let migrations = Migrations::new([
///     ("001_init", "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"),
///     ("002_email", "ALTER TABLE users ADD COLUMN email TEXT"),
/// ]);
/// let db = Options::new(":memory:").migrations(migrations).open().wait()?;
/// db.execute("INSERT INTO users (name, email) VALUES ('Ada', 'ada@example.org')", ()).wait()?;
/// # Ok::<_, flatwater::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Migrations {
    /// Or what is wrong with the list: reported where it is used.
    steps: Result<Arc<[Step]>>,
    pub(crate) ignore_missing: bool,
    pub(crate) check: ForeignKeyCheck,
}

/// Which tables are checked for rows without their parent after each migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ForeignKeyCheck {
    /// All tables with a foreign key: every row of them is read.
    #[default]
    All,
    /// The tables that the migration writes, creates or alters, and those that refer to one of these.
    Touched,
}

/// One migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) sql: String,
    pub(crate) checksum: Vec<u8>,
    pub(crate) in_transaction: bool,
}

impl Migrations {
    /// Returns the migrations of this list of names and scripts. A name begins with a number, and the numbers ascend:
    /// `001_init`, `002_email`. The list may be empty. The macro `migrations!` makes one of a folder when the program is compiled
    /// (feature `derive`).
    ///
    /// If the names or their order are wrong, the call that uses the list returns `Misuse`.
    pub fn new<N: Into<String>, S: Into<String>>(list: impl IntoIterator<Item = (N, S)>) -> Self {
        let steps = list.into_iter().map(|(name, sql)| Step::new(&name.into(), sql.into()));
        Self::of(steps.collect::<Result<_>>().and_then(in_order))
    }

    /// Reads the files of a folder whose names end with `.sql`, such as `001_init.sql`. Files that end with `.down.sql`
    /// are ignored. Blocks on the file system.
    ///
    /// # Errors
    /// `Io` if the folder or a file cannot be read; `Misuse` for a folder without such a file, which may be the wrong one, for
    /// a file without a number, or two with the same.
    pub fn from_dir(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |path: &Path, error: std::io::Error| {
            let message = format!("the migrations in {} cannot be read: {error}", path.display());
            caused_by(Error::new(ErrorCode::System, message), error)
        };
        let mut steps = Vec::new();
        for entry in std::fs::read_dir(path).map_err(|error| failed(path, error))? {
            let file = entry.map_err(|error| failed(path, error))?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".sql") && !name.ends_with(".down.sql") {
                let sql = std::fs::read_to_string(&file).map_err(|error| failed(&file, error))?;
                steps.push(Step::new(&name, sql)?);
            }
        }
        if steps.is_empty() {
            return Err(Error::new(
                ErrorCode::InvalidMigration,
                format!("there is no migration in the folder {}", path.display()),
            )
            .with_hint("its files are named 001_init.sql; folders in it, and files of other names, are not read"));
        }
        steps.sort_by_key(|step| step.version);
        Ok(Self::of(Ok(in_order(steps)?)))
    }

    fn of(steps: Result<Vec<Step>>) -> Self {
        Self { steps: steps.map(Arc::from), ignore_missing: false, check: ForeignKeyCheck::All }
    }

    /// Accepts a database with migrations that the list does not have, as an older program finds during a rolling
    /// deployment. Default off: such a database is refused.
    pub fn ignore_missing(mut self, on: bool) -> Self {
        self.ignore_missing = on;
        self
    }

    /// Sets which tables are checked for rows without their parent after each migration. Default
    /// [`ForeignKeyCheck::All`].
    pub fn foreign_key_check(mut self, check: ForeignKeyCheck) -> Self {
        self.check = check;
        self
    }

    pub(crate) fn steps(&self) -> Result<&[Step]> {
        self.steps.as_deref().map_err(Clone::clone)
    }
}

impl<N: Into<String>, S: Into<String>, const COUNT: usize> From<[(N, S); COUNT]> for Migrations {
    fn from(list: [(N, S); COUNT]) -> Self {
        Self::new(list)
    }
}

impl<N: Into<String>, S: Into<String>> From<Vec<(N, S)>> for Migrations {
    fn from(list: Vec<(N, S)>) -> Self {
        Self::new(list)
    }
}

impl From<&Self> for Migrations {
    fn from(migrations: &Self) -> Self {
        migrations.clone()
    }
}

impl Step {
    fn new(name: &str, sql: String) -> Result<Self> {
        let name = name.strip_suffix(".sql").unwrap_or(name);
        let name = name.strip_suffix(".up").unwrap_or(name);
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let (number, rest) = name.split_at(digits);
        let version = number.parse().ok().filter(|_| rest.is_empty() || rest.starts_with('_'));
        let version = version.ok_or_else(|| {
            Error::new(ErrorCode::InvalidMigration, format!("the migration {name:?} has no number"))
                .with_hint("a name begins with its number, for example 001_init")
        })?;
        if sql.contains('\0') {
            return Err(Error::new(ErrorCode::InvalidMigration, format!("the migration {name} has a NUL byte")));
        }
        // What follows on the line is a comment.
        let after = sql.strip_prefix(NO_TRANSACTION);
        let in_transaction = after.is_none_or(|after| after.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        Ok(Self { version, name: name.into(), checksum: checksum(&sql.replace("\r\n", "\n")), sql, in_transaction })
    }

    /// Returns true if `stored` is the checksum of this script, with these or with other ends of lines.
    pub(crate) fn has_checksum(&self, stored: &[u8]) -> bool {
        let with_crlf = || checksum(&self.sql.replace("\r\n", "\n").replace('\n', "\r\n"));
        stored == self.checksum || stored == checksum(&self.sql) || stored == with_crlf()
    }
}

fn checksum(sql: &str) -> Vec<u8> {
    Sha384::digest(sql).to_vec()
}

fn in_order(steps: Vec<Step>) -> Result<Vec<Step>> {
    match steps.windows(2).find(|two| two[0].version >= two[1].version) {
        Some(two) => Err(Error::new(
            ErrorCode::InvalidMigration,
            format!("the migration {} comes after {}", two[1].name, two[0].name),
        )
        .with_hint("each migration needs a higher number than the one before it")),
        None => Ok(steps),
    }
}

/// Returns the number of the line at byte `at`, beginning with 1.
pub(crate) fn line(sql: &str, at: usize) -> usize {
    1 + sql.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

/// A row of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) checksum: Vec<u8>,
}

/// Returns the first step that is not applied.
pub(crate) fn next<'a>(steps: &'a [Step], applied: &[Applied], ignore_missing: bool) -> Result<Option<&'a Step>> {
    let by_version: HashMap<i64, &Step> = steps.iter().map(|step| (step.version, step)).collect();
    for row in applied {
        step(1);
        match by_version.get(&row.version) {
            Some(step) if !step.has_checksum(&row.checksum) => return Err(changed(step)),
            None if !ignore_missing => return Err(missing(steps, row)),
            _ => {}
        }
    }
    let applied: HashSet<i64> = applied.iter().map(|row| row.version).collect();
    Ok(steps.iter().inspect(|_| step(1)).find(|step| !applied.contains(&step.version)))
}

fn changed(step: &Step) -> Error {
    Error::new(ErrorCode::MigrationChanged, format!("the migration {} was changed after it was applied", step.name))
        .with_hint("restore its text, and write another migration for the change")
}

fn missing(steps: &[Step], row: &Applied) -> Error {
    if steps.last().is_none_or(|last| last.version < row.version) {
        return Error::new(
            ErrorCode::MigrationUnknown,
            format!("the database is newer than this program: it has the migration {}", row.name),
        )
        .with_hint(hint!["start the newer program, or set " IgnoreMissing " while both are in use"]);
    }
    Error::new(
        ErrorCode::MigrationUnknown,
        format!("the database has the migration {}, which is not in the list", row.name),
    )
    .with_hint(hint!["add it to the list again, or set " IgnoreMissing])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::migrations::Migrations;

    fn names(migrations: &Migrations) -> Vec<&str> {
        migrations.steps().unwrap().iter().map(|step| &*step.name).collect()
    }

    #[test]
    fn a_list_is_in_the_order_of_its_numbers() {
        let list =
            Migrations::new([("1_a", ""), ("02_b.sql", ""), ("20240101120000_c.up.sql", ""), ("20240101120001", "")]);
        assert_eq!(names(&list), ["1_a", "02_b", "20240101120000_c", "20240101120001"]);
        for wrong in [["2_a", "1_b"], ["1_a", "01_b"], ["init", "2_b"], ["1a", "2_b"], ["99999999999999999999_a", "x"]]
        {
            let list = Migrations::new(wrong.map(|name| (name, "")));
            assert_eq!(list.steps().unwrap_err().kind(), ErrorKind::Misuse, "{wrong:?}");
        }
        assert!(Migrations::new([("1_a", "SELECT '\0'")]).steps().is_err());
    }

    #[test]
    fn a_folder_is_read_by_number_without_what_is_no_step_up() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["10_c.sql", "9_b.up.sql", "9_b.down.sql", "1_a.sql", "README.md"] {
            std::fs::write(folder.path().join(name), "SELECT 1").unwrap();
        }
        assert_eq!(names(&Migrations::from_dir(folder.path()).unwrap()), ["1_a", "9_b", "10_c"]);
        std::fs::write(folder.path().join("01_again.sql"), "").unwrap();
        assert_eq!(Migrations::from_dir(folder.path()).unwrap_err().kind(), ErrorKind::Misuse);
        assert_eq!(Migrations::from_dir(folder.path().join("none")).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(Migrations::from_dir(folder.path().join("1_a.sql")).unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn a_folder_without_a_migration_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", "README.md", "1_a.down.sql", "1_a.SQL.bak"] {
            if !name.is_empty() {
                std::fs::write(folder.path().join(name), "SELECT 1").unwrap();
            }
            std::fs::create_dir_all(folder.path().join("001_init")).unwrap();
            let error = Migrations::from_dir(folder.path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.message().contains(&*folder.path().to_string_lossy()), "{error}");
        }
        assert_eq!(Migrations::new([("", ""); 0]).steps(), Ok(&[][..]));
    }

    #[test]
    fn a_checksum_is_sqlxs_whatever_the_ends_of_lines() {
        let unix = Step::new("1_a", "SELECT 1;\nSELECT 2;\n".into()).unwrap();
        let windows = Step::new("1_a", "SELECT 1;\r\nSELECT 2;\r\n".into()).unwrap();
        assert_eq!(unix.checksum, Sha384::digest("SELECT 1;\nSELECT 2;\n").to_vec());
        assert_eq!(unix.checksum, windows.checksum);
        assert!(windows.has_checksum(&Sha384::digest("SELECT 1;\r\nSELECT 2;\r\n")));
        assert!(!windows.has_checksum(&Sha384::digest("SELECT 1;")));
        let hex: String = checksum("abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(hex.starts_with("cb00753f45a35e8bb5a03d699ac65007"), "the example of FIPS 180-4");
    }

    #[test]
    fn the_first_line_says_that_a_step_needs_no_transaction() {
        let of = |sql: &str| Step::new("1_a", sql.into()).unwrap().in_transaction;
        assert!(!of("-- no-transaction\nVACUUM") && !of("-- no-transaction \r\nVACUUM"));
        assert!(!of("-- no-transaction: VACUUM needs it\nVACUUM") && !of("-- no-transaction"));
        assert!(of("-- no-transactions\nSELECT 1") && of(" -- no-transaction"));
        assert!(of("") && of("VACUUM -- no-transaction") && of("\n-- no-transaction"));
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!((line("a\nb\n", 0), line("a\nb\n", 2), line("a\nb\n", 100)), (1, 2, 3));
    }

    fn list(names: &[&str]) -> Migrations {
        Migrations::new(names.iter().map(|name| (*name, format!("SELECT '{name}'"))))
    }

    fn rows(names: &[&str]) -> Vec<Applied> {
        let list = list(names);
        let row =
            |step: &Step| Applied { version: step.version, name: step.name.clone(), checksum: step.checksum.clone() };
        list.steps().unwrap().iter().map(row).collect()
    }

    fn next_of(names: &[&str], applied: &[&str], ignore_missing: bool) -> Result<Option<String>> {
        let list = list(names);
        let next = next(list.steps().unwrap(), &rows(applied), ignore_missing)?;
        Ok(next.map(|step| step.name.clone()))
    }

    #[test]
    fn the_first_that_is_not_applied_is_next_even_before_applied_ones() {
        let next = |names, applied| next_of(names, applied, false).unwrap();
        assert_eq!(next(&["1_a", "2_b"], &[]).as_deref(), Some("1_a"));
        assert_eq!(next(&["1_a", "2_b"], &["1_a"]).as_deref(), Some("2_b"));
        assert_eq!(next(&["1_a", "2_b", "3_c"], &["1_a", "3_c"]).as_deref(), Some("2_b"));
        assert_eq!(next(&["1_a"], &["1_a"]), None);
        assert_eq!(next(&[], &[]), None);
    }

    #[test]
    fn what_the_list_lacks_is_refused_unless_it_may() {
        for (names, applied, says) in [
            (&["1_a"][..], &["1_a", "2_b"][..], "newer"),
            (&[], &["1_a"], "newer"),
            (&["1_a", "3_c"], &["1_a", "2_b"], "not in the list"),
        ] {
            let error = next_of(names, applied, false).unwrap_err();
            assert!(error.message().contains(says), "{error}");
            assert!(next_of(names, applied, true).is_ok());
        }
        assert_eq!(next_of(&["1_a", "3_c"], &["1_a", "2_b"], true).unwrap().as_deref(), Some("3_c"));
    }

    #[test]
    fn a_changed_text_is_refused_always() {
        let changed = Migrations::new([("1_a", "SELECT 2")]);
        for ignore_missing in [false, true] {
            let error = next(changed.steps().unwrap(), &rows(&["1_a"]), ignore_missing).unwrap_err();
            assert!(error.message().contains("1_a was changed"), "{error}");
        }
    }
}
