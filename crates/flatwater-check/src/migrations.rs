//! The files of a folder of migrations, in the order in which they are applied.
//!
//! Owns: which files count, by the rules of `Migrations::from_dir`. Invariant: files come in the order of their numbers. Leaves out:
//! applying them (`schema`).

use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// A file of a migration: its number, its name without the ending, and its path.
pub(crate) struct Migration {
    number: i64,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Returns the migrations of a folder.
pub(crate) fn of(folder: &Path) -> Result<Vec<Migration>, Fault> {
    let failed = |error: std::io::Error| {
        Fault::new(format!("the migrations in {} cannot be read: {error}", folder.display()))
            .with_hint("name their folder in flatwater.toml: migrations = \"folder\"")
    };
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".sql").filter(|name| !name.ends_with(".down")) else { continue };
        let name = name.strip_suffix(".up").unwrap_or(name).to_owned();
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let number = name[..digits].parse().ok().filter(|_| digits == name.len() || name[digits..].starts_with('_'));
        let number = number.ok_or_else(|| {
            Fault::new(format!("the migration {} has no number", path.display()))
                .with_hint("a name begins with its number, for example 001_init.sql")
        })?;
        all.push(Migration { number, name, path });
    }
    if all.is_empty() {
        return Err(Fault::new(format!("there is no migration in the folder {}", folder.display())));
    }
    all.sort_by_key(|migration| migration.number);
    match all.windows(2).find(|two| two[0].number == two[1].number) {
        Some(two) => {
            Err(Fault::new(format!("the migrations {} and {} have the same number", two[0].name, two[1].name)))
        }
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_by_number_and_what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of(folder.path()).err().unwrap().message.contains("no migration in the folder"));
        for name in ["10_c.sql", "9_b.up.sql", "9_b.down.sql", "1_a.sql", "README.md"] {
            std::fs::write(folder.path().join(name), "SELECT 1").unwrap();
        }
        let names: Vec<_> = of(folder.path()).ok().unwrap().into_iter().map(|migration| migration.name).collect();
        assert_eq!(names, ["1_a", "9_b", "10_c"]);
        std::fs::write(folder.path().join("01_again.sql"), "").unwrap();
        assert!(of(folder.path()).err().unwrap().message.contains("have the same number"));
        std::fs::write(folder.path().join("init.sql"), "").unwrap();
        assert!(of(folder.path()).err().unwrap().message.contains("init.sql has no number"));
        assert!(of(&folder.path().join("none")).err().unwrap().message.contains("cannot be read"));
    }
}
