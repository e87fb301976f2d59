//! `flatwater migrate`: the migrations of a folder, on a database.
//!
//! Owns: naming a new one, and comparing the folder with the history of a database. Invariant: `status` and `check` change nothing but
//! a copy. Leaves out: applying them, and the rules for their names and texts, which are the library's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use flatwater::{Database, Migrations, Options};

use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::style;
use crate::place::Place;

/// Apply the migrations of a folder, or say which are missing
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    step: Step,

    /// The folder with the migrations
    #[arg(long, global = true, default_value = "migrations", value_name = "FOLDER")]
    dir: PathBuf,
}

#[derive(Subcommand)]
enum Step {
    /// Make a file for a migration with the next number
    New {
        /// What it does, such as `add email`
        name: String,
    },
    /// List the migrations, and which are applied
    Status(Place),
    /// Apply those that are missing. A database that is not there is made
    Run(Place),
    /// Apply those that are missing to a copy, and say whether that works
    Check {
        #[command(flatten)]
        place: Place,
        /// Exit with 3 if one is missing
        #[arg(long)]
        applied: bool,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let folder = &arguments.dir;
    match &arguments.step {
        Step::New { name } => new(folder, name),
        Step::Status(place) => status(folder, place),
        Step::Run(place) => apply(folder, place),
        Step::Check { place, applied } => check(folder, place, *applied),
    }
}

/// The migrations of a folder, by number. What is wrong with a name, the library says.
fn names(folder: &Path) -> Outcome<BTreeMap<i64, String>> {
    let failed = || Failure::system(format!("reading {}", folder.display()));
    let mut names = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let name = entry.map_err(failed())?.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".sql").filter(|stem| !stem.ends_with(".down"))
            && let Some(number) = number(stem)
        {
            names.insert(number, stem.to_owned());
        }
    }
    Ok(names)
}

fn number(name: &str) -> Option<i64> {
    name[..name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len())].parse().ok()
}

fn new(folder: &Path, name: &str) -> Outcome {
    std::fs::create_dir_all(folder).map_err(Failure::system(format!("making {}", folder.display())))?;
    let names = names(folder)?;
    let path = folder.join(format!("{}.sql", next_name(names.last_key_value(), name)?));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
    made.map_err(Failure::system(format!("making {}", path.display())))?;
    say!("{}", path.display());
    Ok(())
}

/// The number after the last one, as long as that is written, and the words of the name.
fn next_name(last: Option<(&i64, &String)>, name: &str) -> Outcome<String> {
    let words: Vec<String> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    if words.is_empty() {
        return Err(Failure::Usage("a migration needs a name with letters".to_owned()));
    }
    let (number, width) =
        last.map_or((0, 3), |(number, name)| (*number, name.bytes().take_while(u8::is_ascii_digit).count()));
    Ok(format!("{:0width$}_{}", number + 1, words.join("_")))
}

/// The names that are applied, with their times, by number.
fn history(db: &Database) -> Outcome<BTreeMap<i64, (String, String)>> {
    let is_there = "SELECT count(*) FROM sqlite_schema WHERE name = '_flatwater_migrations'";
    if db.query_value::<i64>(is_there, ()).wait()? == 0 {
        return Ok(BTreeMap::new());
    }
    let rows = db.query("SELECT version, name, applied_at FROM _flatwater_migrations", ()).wait()?;
    let rows: Vec<(i64, String, String)> = rows.read()?;
    Ok(rows.into_iter().map(|(version, name, at)| (version, (name, at))).collect())
}

fn status(folder: &Path, place: &Place) -> Outcome {
    let names = names(folder)?;
    let history = if place.exists() {
        let db = place.reader()?;
        let history = history(&db)?;
        db.close().wait()?;
        history
    } else {
        BTreeMap::new()
    };
    let paint = style::output();
    let numbers: std::collections::BTreeSet<&i64> = names.keys().chain(history.keys()).collect();
    for number in numbers {
        match (names.get(number), history.get(number)) {
            (Some(name), Some((_, at))) => say!("{} {name}  {}", paint.good("applied"), paint.dim(at)),
            (Some(name), None) => say!("{} {name}", paint.warning("missing")),
            (None, Some((name, at))) => {
                say!("{} {name}  {}", paint.error("no file"), paint.dim(at));
            }
            (None, None) => unreachable!("the number is of one of them"),
        }
    }
    Ok(())
}

fn apply(folder: &Path, place: &Place) -> Outcome {
    let migrations = Migrations::from_dir(folder)?;
    let db = place.writer(true)?;
    interrupt::closes(&db)?;
    let applied = db.migrate(migrations).wait()?;
    report(&applied, "applied");
    Ok(db.close().wait()?)
}

fn report(names: &[String], what: &str) {
    names.iter().for_each(|name| say!("{what} {name}"));
    if names.is_empty() {
        say!("all migrations are applied");
    }
}

fn check(folder: &Path, place: &Place, applied: bool) -> Outcome {
    let migrations = Migrations::from_dir(folder)?;
    let temporary = tempfile::tempdir().map_err(Failure::system("making a folder for a copy"))?;
    let copy = temporary.path().join("copy.db");
    if place.exists() {
        let db = place.reader()?;
        interrupt::closes(&db)?;
        db.backup(&copy).wait()?;
        db.close().wait()?;
    }
    let db = Options::new(&copy).optimize_every(None).open().wait()?;
    interrupt::closes(&db)?;
    let missing = db.migrate(migrations).wait()?;
    db.close().wait()?;
    report(&missing, "can be applied:");
    if applied && !missing.is_empty() { Err(Failure::Found) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_name_has_the_next_number() {
        let last = (&9, &"0009_users".to_owned());
        assert_eq!(next_name(Some(last), "Add e-mail!").unwrap(), "0010_add_e_mail");
        assert_eq!(next_name(None, "init").unwrap(), "001_init");
        assert!(next_name(None, "..").is_err());
        assert_eq!([number("012_a"), number("a")], [Some(12), None]);
    }
}
