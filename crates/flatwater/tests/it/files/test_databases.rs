//! The database that tests of a program get.

use flatwater::testing::TestDatabase;
use flatwater::{ErrorKind, Options};

use crate::support::run;

fn schema(options: Options) -> Options {
    options.migrations([("001_init", "CREATE TABLE t (a INTEGER PRIMARY KEY)")])
}

#[test]
fn each_is_migrated_and_empty_and_its_folder_goes_with_it() {
    run(async {
        let (first, second) =
            (TestDatabase::on_file(schema).await.unwrap(), TestDatabase::on_file(schema).await.unwrap());
        assert_ne!(first.path(), second.path());
        first.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!(second.query_optional_value::<i64>("SELECT count(*) FROM t", ()).await.unwrap(), Some(0));
        assert!(!first.stats().one_connection);
        let path = first.path().unwrap();
        let first = first.reopen(schema).await.unwrap();
        assert_eq!((first.path(), path.exists()), (Some(path.clone()), true));
        assert_eq!(first.query_optional_value::<i64>("SELECT a FROM t", ()).await.unwrap(), Some(1));
        drop(first);
        assert!(!path.exists());
    });
}

#[test]
fn one_in_memory_has_no_file_and_cannot_be_opened_again() {
    run(async {
        let db = TestDatabase::in_memory(schema).await.unwrap();
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        assert_eq!((db.path(), db.stats().one_connection), (None, true));
        assert_eq!(db.reopen(schema).await.unwrap_err().kind(), ErrorKind::Misuse);
    });
}
