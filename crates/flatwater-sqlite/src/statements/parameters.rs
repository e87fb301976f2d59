//! The parameters of a statement: how many there are, and their names.
//!
//! Owns: reading them from SQLite, and finding one by its name. Used by the thread that uses the connection. Invariant: the
//! names are read once per prepare, when values are first bound by name: SQLite finds each in a list
//! (<https://sqlite.org/c3ref/bind_parameter_name.html>). Leaves out: binding (`running`).

use std::collections::HashMap;
use std::ffi::CStr;

use rusqlite::ffi;

/// What each run needs to know of the parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    pub(crate) count: usize,
    /// The place, counted from 1, of the first parameter whose name is another number with a `$`; 0 if there is none.
    pub(crate) misnumbered: usize,
}

/// So many parameters are looked at.
const NUMBERED: usize = 256;

impl Parameters {
    /// # Safety
    /// `raw` is a statement that is alive, and no other thread uses its connection.
    pub(crate) unsafe fn of(raw: *mut ffi::sqlite3_stmt) -> Self {
        // SAFETY: as the caller promises; a name is null or NUL-terminated, and lives as long as the statement.
        let (count, name) = unsafe {
            let count = ffi::sqlite3_bind_parameter_count(raw).unsigned_abs() as usize;
            let name = |place: usize| {
                let name = ffi::sqlite3_bind_parameter_name(raw, i32::try_from(place).unwrap_or(0));
                (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes())
            };
            (count, name)
        };
        let is_wrong = |place: &usize| name(*place).and_then(numbered).is_some_and(|number| number != *place);
        Self { count, misnumbered: (1..=count.min(NUMBERED)).find(is_wrong).unwrap_or(0) }
    }
}

/// Returns the number of a parameter that is called `$1`, which to SQLite is a name as any other.
fn numbered(name: &[u8]) -> Option<usize> {
    str::from_utf8(name.strip_prefix(b"$")?).ok()?.parse().ok()
}

/// The names of the parameters of a statement.
#[derive(Debug)]
pub(crate) struct Names {
    /// With the prefix; `?` and a number for those without a name.
    names: Vec<Box<str>>,
    /// The position of the first that is called so, with the prefix or without.
    positions: HashMap<Box<str>, usize>,
}

impl Names {
    /// # Safety
    /// `raw` is a statement that is alive, and no other thread uses its connection.
    pub(crate) unsafe fn of(raw: *mut ffi::sqlite3_stmt) -> Self {
        // SAFETY: as the caller promises; a name is null or NUL-terminated, and lives as long as the statement.
        let names = unsafe {
            let count = ffi::sqlite3_bind_parameter_count(raw);
            let name = |number| {
                let name = ffi::sqlite3_bind_parameter_name(raw, number);
                if name.is_null() { format!("?{number}") } else { CStr::from_ptr(name).to_string_lossy().into_owned() }
            };
            (1..=count).map(|number| name(number).into()).collect()
        };
        Self::from(names)
    }

    fn from(names: Vec<Box<str>>) -> Self {
        let mut positions = HashMap::with_capacity(2 * names.len());
        for (position, name) in names.iter().enumerate().filter(|(_, name)| is_name(name)) {
            positions.entry(name.clone()).or_insert(position);
            positions.entry(name[1..].into()).or_insert(position);
        }
        Self { names, positions }
    }

    /// Returns the position of the parameter that is called so, with the prefix or without.
    pub(crate) fn find(&self, given: &str) -> Option<usize> {
        self.positions.get(given).copied()
    }

    /// The name of the parameter at this position.
    pub(crate) fn name(&self, position: usize) -> &str {
        &self.names[position]
    }

    /// All that have a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name).filter(|name| is_name(name))
    }
}

/// Returns false for `?` and `?N`.
pub(crate) fn is_name(name: &str) -> bool {
    !name.starts_with('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_with_its_prefix_and_without_and_the_first_of_two() {
        let names = Names::from([":a", "?2", "@b", "$a", ":b"].map(Into::into).into());
        let found = [":a", "a", "$a", "b", "@b", ":b"].map(|name| names.find(name));
        assert_eq!(found, [Some(0), Some(0), Some(3), Some(2), Some(2), Some(4)]);
        assert_eq!(["?2", "2", "", "c"].map(|name| names.find(name)), [None; 4]);
        assert_eq!(names.named().collect::<Vec<_>>(), [":a", "@b", "$a", ":b"]);
    }
}
