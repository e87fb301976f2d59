//! The schema of the corpus, for the tests of its texts and of single ones.

use std::path::{Path, PathBuf};

use flatwater_check::{Attached, Database, Function, Kind, Schema};

pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

pub(crate) fn schema() -> Schema {
    let function = |name: &str, returns, nullable, aggregate| Function {
        name: name.into(),
        arguments: 1,
        returns,
        nullable,
        aggregate,
    };
    Schema::new(&Database {
        migrations: corpus().join("migrations"),
        functions: vec![function("slug", Kind::Text, false, false), function("median", Kind::Real, true, true)],
        collations: vec!["german".into()],
        attached: vec![Attached { name: "archive".into(), migrations: corpus().join("archive") }],
        ..Database::default()
    })
    .unwrap()
}
