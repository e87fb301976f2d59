//! Which migration is next. Pure.
//!
//! Owns: the decision from a list and the history of a database. Invariant: a text that was changed after it was
//! applied, or a history that the list does not have, is an error and not passed over. Leaves out: reading the history.

use std::collections::{HashMap, HashSet};

use super::Step;
use crate::error::hint::hint;
use crate::error::{Error, Result};
use crate::growth_counter::step;

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
    Error::misuse(format!("the migration {} was changed after it was applied", step.name))
        .with_hint("restore its text, and write another migration for the change")
}

fn missing(steps: &[Step], row: &Applied) -> Error {
    if steps.last().is_none_or(|last| last.version < row.version) {
        return Error::misuse(format!("the database is newer than this program: it has the migration {}", row.name))
            .with_hint(hint!["start the newer program, or set " IgnoreMissing " while both are in use"]);
    }
    Error::misuse(format!("the database has the migration {}, which is not in the list", row.name))
        .with_hint(hint!["add it to the list again, or set " IgnoreMissing])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations::Migrations;

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
