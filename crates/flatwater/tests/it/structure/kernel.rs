//! Checks the wall between the kernel and the features: what each feature may be named by in the kernel.
//!
//! The kernel is the queue, the slot, readers, kept connections, short runs, checkpoints, the connection, SQL and bytecode. A feature
//! hangs on hooks: a connection was opened, a statement prepared, the slot left, a call ended, the database closes. The files of the
//! kernel that name one are listed here, and the lists only become shorter. Package `flatwater-kernel` compiles the kernel without them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::floors::{engine, imports_from_engine, sources};
use super::sizes::{fault, lines};

/// The rooms of the kernel, without those of features inside them.
const KERNEL: &[&str] =
    &["busy_handler", "bytecode", "connection", "inline", "lease", "queue", "sql", "thread", "time", "workers"];

/// A feature, its rooms, and the files of the kernel that name it.
type Feature = (&'static str, &'static [&'static str], &'static [&'static str]);

const FEATURES: &[Feature] = &[
    (
        "live queries",
        &["api::live", "connection::learn::live_query", "dependencies", "engine::connect", "workers::live"],
        &[
            "connection::learn::schema_tables",
            "connection::run::execute",
            "connection::run::failures",
            "sql::class",
            "sql::text",
            "workers",
            "workers::answer",
            "workers::interfaces",
            "workers::readers::inline_read",
            "workers::readers::perform_read",
            "workers::rounds::alone",
            "workers::work",
            "workers::writer::publish",
        ],
    ),
    ("the turnstile", &["turnstile"], &["workers::context", "workers::writer::slot"]),
    (
        "functions of the program",
        &["connection::functions"],
        &[
            "connection::learn::explain",
            "connection::open",
            "workers::context",
            "workers::kept",
            "workers::own_connections",
            "workers::writer::state",
        ],
    ),
    (
        "work that needs the connection for itself",
        &["connection::exclusive", "migrations", "workers::exclusive"],
        &["workers::readers::perform_read", "workers::rounds::alone", "workers::work"],
    ),
    (
        "events",
        &["events"],
        &[
            "queue::metrics",
            "queue::ticket",
            "workers::kept::transaction",
            "workers::own_connections::serve_inbox",
            "workers::perform::transaction",
            "workers::readers::serve",
            "workers::readers::serve_session",
            "workers::rounds::round",
        ],
    ),
    (
        "blobs",
        &["connection::run::blobs"],
        &[
            "workers",
            "workers::answer",
            "workers::perform::statements",
            "workers::readers::run_query",
            "workers::rounds::alone",
            "workers::work",
        ],
    ),
    ("parking", &["engine::parking", "engine::eviction", "workers::writer::park_database"], &[]),
];

fn is_in(module: &str, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| module == *room || module.strip_prefix(room).is_some_and(|rest| rest.starts_with("::")))
}

/// The lines of code of the kernel, and how far below that it may be.
const LINES: (usize, usize) = (16_895, 150);

/// The lines of code that the kernel alone has in the place of features: what it needs to know of them.
const ABSENT: (usize, usize) = (240, 20);

/// Returns the modules of the kernel, with their files and texts.
fn kernel() -> Vec<(Vec<String>, PathBuf, String)> {
    let is_kernel = |name: &str| {
        let is_feature = FEATURES.iter().any(|(_, rooms, _)| is_in(name, rooms));
        is_in(name, KERNEL) && !is_feature && !name.ends_with("tests")
    };
    let kernel = engine().into_iter().filter(|(path, _)| is_kernel(&path.join("::")));
    let with_text = |(path, file): (Vec<String>, PathBuf)| {
        let text = std::fs::read_to_string(&file).unwrap();
        (path, file, text)
    };
    kernel.map(with_text).collect()
}

/// Returns the files of the kernel that name each feature.
fn doors() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut doors: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let kernel = kernel();
    assert!(kernel.len() > 100, "only {} files of the kernel were seen", kernel.len());
    for (path, file, text) in kernel {
        let named = imports_from_engine(&path, &file, &text);
        for (feature, rooms, _) in FEATURES {
            if named.iter().any(|import| is_in(&import.join("::"), rooms)) {
                doors.entry(feature).or_default().insert(path.join("::"));
            }
        }
    }
    doors
}

#[test]
fn the_kernel_names_features_only_where_they_hang_on_it() {
    let mut doors = doors();
    let mut faults = Vec::new();
    for (feature, _, allowed) in FEATURES {
        let found = doors.remove(feature).unwrap_or_default();
        let allowed: BTreeSet<String> = allowed.iter().map(|file| (*file).to_owned()).collect();
        faults.extend(found.difference(&allowed).map(|file| format!("{file} names {feature}: hang it on a hook")));
        faults.extend(allowed.difference(&found).map(|file| format!("{file} names {feature} no more: take it off")));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_kernel_grows_no_larger() {
    let code = kernel().iter().map(|(_, _, text)| lines(text)).sum();
    assert_eq!(fault("lines of code of the kernel", code, LINES), None);
}

#[test]
fn what_the_kernel_needs_of_features_is_little() {
    let absent = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/src/absent");
    let code = sources(&absent).iter().map(|file| lines(&std::fs::read_to_string(file).unwrap())).sum();
    assert_eq!(fault("lines of code in the place of features", code, ABSENT), None);
}
