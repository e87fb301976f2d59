//! The structure, read from the sources: a file imports from lower floors only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Floors of `src`, lowest first. Folders of one floor do not import each other.
const FLOORS: &[&[&str]] = &[
    &["types"],
    &["connection", "waiting", "encode", "stats", "file"],
    &["workers"],
    &["backend"],
    &["stage"],
    &["call"],
    &["operations"],
    &["prepared", "transaction"],
    &["database"],
    &["blocking", "closures"],
    &["lib"],
];

fn floor(room: &str) -> usize {
    FLOORS.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| panic!("{room} has no floor"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false if path.extension().is_some_and(|end| end == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}

/// The first two parts below `src`: room and, inside workers, the worker.
fn place(src: &Path, file: &Path) -> (String, String) {
    let below = file.strip_prefix(src).unwrap().with_extension("");
    let mut parts = below.components().map(|part| part.as_os_str().to_str().unwrap().to_owned());
    (parts.next().unwrap(), parts.next().unwrap_or_default())
}

/// What a file imports: `crate::room::part`, wherever it stands outside of comments.
fn imports(text: &str) -> Vec<(String, String)> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.match_indices("crate::").map(move |(at, _)| (line, at)))
        .filter(|(line, at)| !line[..*at].ends_with('$'))
        .map(|(line, at)| {
            let path = &line[at + "crate::".len()..];
            let mut parts =
                path.split("::").map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap());
            (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default().to_owned())
        })
        .collect()
}

#[test]
fn a_file_imports_from_lower_floors_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    let mut faults = Vec::new();
    for file in sources(&src) {
        let (room, part) = place(&src, &file);
        let text = std::fs::read_to_string(&file).unwrap();
        for (to, to_part) in imports(&text) {
            // Names re-exported at the root, and macros.
            if to.is_empty() || to.starts_with(char::is_uppercase) || ["params", "named"].contains(&&*to) {
                continue;
            }
            checked += 1;
            let same_room = room == to;
            let shared = ["request", "session"];
            let worker_to_worker = room == "workers" && same_room && part != to_part && !shared.contains(&&*to_part);
            let upward = floor(&to) >= floor(&room) && !same_room;
            if upward || worker_to_worker {
                faults.push(format!("{} imports crate::{to}::{to_part}", file.display()));
            }
        }
    }
    assert!(checked > 100, "only {checked} imports were seen: the test no longer reads the sources");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_file_says_what_it_owns_and_stays_small() {
    let mut faults = Vec::new();
    for crate_name in ["flatwater", "flatwater-sqlite"] {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(crate_name).join("src");
        for file in sources(&src) {
            let text = std::fs::read_to_string(&file).unwrap();
            if !text.starts_with("//! ") {
                faults.push(format!("{} has no head", file.display()));
            }
            let code =
                text.split("#[cfg(test)]").next().unwrap().split("#[cfg(all(test").next().unwrap().lines().count();
            if code > 350 {
                faults.push(format!("{} has {code} lines before its tests", file.display()));
            }
            if let Some(at) = text.find(|c: char| !c.is_ascii()) {
                let line = text[..at].lines().count();
                if !text[at..].starts_with('é') {
                    faults.push(format!("{}:{line} is not ASCII", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn unsafe_stands_in_floor_0_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut with_unsafe: BTreeMap<String, usize> = BTreeMap::new();
    for file in sources(&root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let blocks =
            text.matches("unsafe {").count() + text.matches("unsafe fn").count() + text.matches("unsafe impl").count();
        if blocks > 0 {
            with_unsafe.insert(file.display().to_string(), blocks);
        }
    }
    assert!(with_unsafe.is_empty(), "{with_unsafe:?}");
    assert!(std::fs::read_to_string(root.join("lib.rs")).unwrap().contains("#![forbid(unsafe_code)]"));
}
