//! Files of earlier versions: each opens, with the rows that a killed process left in its WAL, and takes newer migrations.
//!
//! The folder `earlier` has the files of one version each, as a process leaves them that is killed between two writes. The file
//! `<db>-turn` is not among them: it is only for programs that run at the same time, and one of another version is not used.

use std::fs;
use std::path::{Path, PathBuf};

use flatwater::Database;

use crate::support::{TestFile, run};

const MIGRATIONS: [(&str, &str); 2] = [
    (
        "001_init",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, born TEXT, about TEXT) STRICT;
         CREATE TABLE orders (user INTEGER NOT NULL REFERENCES users, number INTEGER, total REAL, note BLOB,
                              PRIMARY KEY (user, number)) WITHOUT ROWID",
    ),
    ("002_shout", "ALTER TABLE users ADD COLUMN shout TEXT AS (upper(email)); CREATE INDEX by_total ON orders (total)"),
];
const NEWER: (&str, &str) = ("003_newer", "CREATE TABLE newer (a)");

const USERS: &str = "INSERT INTO users (id, email, born, about) VALUES
    (1, 'ada@example.com', '1815-12-10', '{\"likes\": [\"engines\"]}'), (2, 'eve@example.com', NULL, NULL)";
const ORDERS: &str = "INSERT INTO orders VALUES (1, 1, 12.5, x'00ff'), (1, 2, 0.25, NULL), (2, 1, -1.0, x'')";
const ALL: &str = "SELECT shout, born, about ->> '$.likes[0]', number, total, hex(note)
    FROM users JOIN orders ON user = id ORDER BY id, number";
type Row = (String, Option<String>, Option<String>, i64, f64, String);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/files/earlier")
}

/// Makes the files of this version: `cargo test -p flatwater --test it the_files_of_this_version_are_made -- --ignored`, when a version
/// is released.
#[test]
#[ignore = "it writes into the folder of the sources"]
fn the_files_of_this_version_are_made() {
    let to = folder().join(env!("CARGO_PKG_VERSION"));
    run(async {
        let file = TestFile::new();
        let db = file.options().migrations(MIGRATIONS).open().await.unwrap();
        db.execute(USERS, ()).await.unwrap();
        db.checkpoint(flatwater::calls::CheckpointMode::Truncate).await.unwrap();
        db.execute(ORDERS, ()).await.unwrap();
        fs::create_dir_all(&to).unwrap();
        for suffix in ["", "-wal"] {
            fs::copy(file.beside(suffix), to.join(format!("test.db{suffix}"))).unwrap();
        }
        db.close().await.unwrap();
    });
}

async fn rows(db: &Database) -> Vec<Row> {
    db.query_as::<Row>(ALL, ()).await.unwrap()
}

#[test]
fn a_file_of_each_earlier_version_opens_with_all_its_rows() {
    let versions: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(versions.iter().any(|version| version.ends_with(env!("CARGO_PKG_VERSION"))), "this version has no files");
    for version in versions {
        let file = TestFile::new();
        for suffix in ["", "-wal"] {
            fs::copy(version.join(format!("test.db{suffix}")), file.beside(suffix)).unwrap();
        }
        assert!(fs::metadata(file.beside("-wal")).unwrap().len() > 0, "{version:?}: it has rows in the WAL");
        run(async {
            let [first, second] = MIGRATIONS;
            let db = file.options().migrations([first, second, NEWER]).open().await.unwrap();
            let text = |text: &str| Some(text.to_owned());
            let ada = || ("ADA@EXAMPLE.COM".to_owned(), text("1815-12-10"), text("engines"));
            let (shout, born, likes) = ada();
            let expected: [Row; 3] = [
                (shout, born, likes, 1, 12.5, "00FF".to_owned()),
                (ada().0, ada().1, ada().2, 2, 0.25, String::new()),
                ("EVE@EXAMPLE.COM".to_owned(), None, None, 1, -1.0, String::new()),
            ];
            assert_eq!(rows(&db).await, expected, "{version:?}");
            let applied = "SELECT count(*) FROM _flatwater_migrations";
            assert_eq!(db.query_value::<i64>(applied, ()).await.unwrap(), 3);
            let refused = db.execute("INSERT INTO users (email) VALUES ('ada@example.com')", ()).await.unwrap_err();
            assert!(refused.is_unique_violation());
            db.execute("INSERT INTO newer VALUES (1)", ()).await.unwrap();
            db.close().await.unwrap();
        });
    }
}
