//! Extensions that are loaded on each connection: one that the tests compile.

use std::path::{Path, PathBuf};
use std::process::Command;

use flatwater::{Error, ErrorKind, Options};

use crate::place::{Place, in_both_places};
use crate::support::{TestFile, empty_table, run};

in_both_places!(
    an_extension_is_there_on_every_connection,
    sql_loads_nothing,
    an_extension_that_cannot_be_loaded_fails_the_open_and_is_named,
    an_extension_replaces_nothing_that_flatwater_needs,
    what_an_extension_set_is_set_back,
    a_closure_may_use_what_an_extension_brought,
);

/// An extension, compiled into a directory of its own.
pub(crate) struct Compiled {
    directory: tempfile::TempDir,
    name: &'static str,
}

impl Compiled {
    fn new() -> Self {
        Self::of("extension")
    }

    /// The one of this name in the folder of the tests.
    pub(crate) fn of(name: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/functions/{name}.c"));
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
            .arg(directory.path().join(format!("{name}{}", std::env::consts::DLL_SUFFIX)))
            .arg(source)
            .status();
        assert!(compiled.expect("there is a C compiler").success());
        Self { directory, name }
    }

    /// Returns the path without the suffix of the system's libraries.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }
}

async fn an_extension_is_there_on_every_connection(place: &Place) {
    let compiled = Compiled::new();
    let db = empty_table(place.options().load_extension(compiled.path(), None)).await;
    db.execute("INSERT INTO t VALUES (twice(1))", ()).await.unwrap();
    let reads: Vec<_> = (0..20).map(|_| db.query_value::<i64>("SELECT twice(a) FROM t", ())).collect();
    for read in futures_util::future::join_all(reads).await {
        assert_eq!(read.unwrap(), 4);
    }
    db.with_connection(|_| Ok::<_, Error>(())).await.unwrap();
    db.execute("INSERT INTO t VALUES (twice(5))", ()).await.unwrap();
    assert_eq!(db.query_value::<i64>("SELECT sum(twice(a)) FROM t", ()).await.unwrap(), 24);
}

async fn sql_loads_nothing(place: &Place) {
    let compiled = Compiled::new();
    let loads = format!("SELECT load_extension('{}')", compiled.path().display());
    let in_closure = loads.clone();
    let options = place.options().load_extension(compiled.path(), None).on_connect(move |connection| {
        let refused = connection.query_row(&in_closure, [], |_| Ok(())).unwrap_err();
        assert!(refused.to_string().contains("not authorized"), "{refused}");
        Ok(())
    });
    let db = options.open().await.unwrap();
    let refused = [
        db.query(&loads, ()).await.unwrap_err(),
        db.query(format!("WITH one AS (SELECT 1) {loads}"), ()).await.unwrap_err(),
        db.write_with(move |tx| Ok::<_, Error>(tx.query_row(&loads, [], |_| Ok(()))?)).await.unwrap_err(),
    ];
    for error in refused {
        assert!(error.message().contains("not authorized"), "{error}");
    }
}

async fn an_extension_that_cannot_be_loaded_fails_the_open_and_is_named(place: &Place) {
    let compiled = Compiled::new();
    let missing = compiled.directory.path().join("missing");
    for (path, entry, said) in [
        (&missing, None, "missing"),
        (&compiled.path(), Some("no_such_entry"), "no_such_entry"),
        (&compiled.path(), Some("fails"), "planted"),
    ] {
        let error = place.options().load_extension(path, entry).open().await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (ErrorKind::Open, Some("open")));
        let begin = format!("the extension {} cannot be loaded: ", path.display());
        assert!(error.message().starts_with(&begin) && error.message().contains(said), "{error}");
    }
    let error = place.options().load_extension("", None).open().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

async fn an_extension_replaces_nothing_that_flatwater_needs(place: &Place) {
    let compiled = Compiled::new();
    for entry in ["sets_a_commit_hook", "sets_an_update_hook", "sets_an_authorizer"] {
        let error = place.options().load_extension(compiled.path(), Some(entry)).open().await.unwrap_err();
        assert!(error.message().contains("it replaced the commit hook"), "{entry}: {error}");
    }
    let error = place.options().load_extension(compiled.path(), Some("attaches")).open().await.unwrap_err();
    assert!(error.message().contains("ATTACH"), "{error}");
}

async fn what_an_extension_set_is_set_back(place: &Place) {
    let compiled = Compiled::new();
    let db = empty_table(place.options().load_extension(compiled.path(), Some("sets_handlers"))).await;
    let counts = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9999) SELECT count(*) FROM n";
    assert_eq!(db.query_value::<i64>(counts, ()).await.unwrap(), 9999);
}

async fn a_closure_may_use_what_an_extension_brought(place: &Place) {
    let compiled = Compiled::new();
    let uses = |connection: &rusqlite::Connection| connection.execute_batch("SELECT twice(1)");
    place.options().on_connect(uses).load_extension(compiled.path(), None).open().await.unwrap();
}

#[test]
fn a_second_open_needs_the_same_extensions() {
    let (file, compiled) = (TestFile::new(), Compiled::new());
    run(async {
        let options = file.options().load_extension(compiled.path(), None);
        let _db = options.clone().open().await.unwrap();
        options.open().await.unwrap();
        let error = Options::new(file.path()).open().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("`load_extension`"), "{error}");
    });
}
