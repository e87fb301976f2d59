//! The URLs that other libraries take instead of a path: refused, with the form that opens the same database here.

use flatwater::{ErrorKind, Options};

use crate::support::{TestFile, files, run};

#[test]
fn urls_of_other_libraries_are_refused_with_the_form_that_works_here() {
    run(async {
        for (url, form) in [
            ("sqlite::memory:", ":memory:"),
            ("sqlite://:memory:", ":memory:"),
            ("sqlite::memory:?cache=shared", ":memory:"),
            ("SQLite3::memory:", ":memory:"),
            (":memory:?cache=shared", ":memory:"),
            (":memory", ":memory:"),
            ("sqlite://app.db", "app.db"),
            ("sqlite:app.db", "app.db"),
            ("sqlite3:app.db", "app.db"),
            ("jdbc:sqlite:app.db", "app.db"),
            ("sqlite+aiosqlite:///app.db", "app.db"),
            ("sqlite+aiosqlite:///data/app.db?timeout=5", "file:data/app.db?timeout=5"),
            ("sqlite+pysqlite:////srv/app.db", "/srv/app.db"),
            ("sqlite+pysqlite:///:memory:", ":memory:"),
            ("sqlite+pysqlite:///file:app.db?mode=ro&uri=true", "file:app.db?mode=ro&uri=true"),
            ("sqlite:////srv/app.db", "/srv/app.db"),
            ("sqlite:///:memory:", ":memory:"),
            ("sqlite:///var/lib/app.db", "/var/lib/app.db"),
            ("sqlite://app.db?mode=rwc", "file:app.db?mode=rwc"),
            ("sqlite:///a%20b.db", "file:/a%20b.db"),
            ("sqlite:file:app.db?mode=ro", "file:app.db?mode=ro"),
        ] {
            let error = Options::new(url).open().await.unwrap_err();
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Misuse, Some("open")), "{url}: {error}");
            let hint = error.hint().unwrap();
            assert!(hint.contains(&format!("write {form:?}")), "{url}: {error}");
            assert!(!std::path::Path::new(url).exists(), "{url} was created");
        }
        for nameless in ["sqlite:", "sqlite://", "sqlite+aiosqlite://", "sqlite:///"] {
            let error = Options::new(nameless).open().await.unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("path of the file")), "{nameless}: {error}");
        }
        // What SQLAlchemy and others mean by the same URL.
        let error = Options::new("sqlite:///app.db").open().await.unwrap_err();
        assert_eq!(error.hint(), Some("write \"/app.db\", or \"app.db\" if the URL is one of SQLAlchemy"));
    });
}

#[test]
fn the_form_in_the_hint_opens_the_database() {
    let file = TestFile::new();
    run(async {
        let path = file.path();
        for url in [format!("sqlite:{}", path.display()), format!("sqlite://{}?mode=rwc", path.display())] {
            let before = files(file.directory());
            let error = Options::new(&url).open().await.unwrap_err();
            assert!(files(file.directory()) == before, "{url} touched a file");
            let form = error.hint().and_then(|hint| hint.split('"').nth(1)).unwrap().to_owned();
            Options::new(form).open().await.unwrap().close().await.unwrap();
            assert!(path.exists());
        }
    });
}

#[test]
fn an_attached_url_is_refused_too_and_a_file_of_such_a_name_can_be_opened() {
    let file = TestFile::new();
    run(async {
        let error = file.options().tuning(|t| t.attach("other", "sqlite:other.db")).open().await.unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("write \"other.db\"")), "{error}");
        let named = file.directory().join("sqlite:app.db");
        Options::new(&named).open().await.unwrap().close().await.unwrap();
        assert!(named.exists());
        let named = file.directory().join("sqlite.db");
        Options::new(&named).open().await.unwrap().close().await.unwrap();
    });
}
