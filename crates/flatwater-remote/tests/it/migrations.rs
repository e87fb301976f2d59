//! Migrations on a cluster.

use flatwater::{ErrorKind, Migrations};
use futures_util::future::join_all;
use serde_json::json;

use super::double::{Double, runtime};

fn list(number: usize) -> Migrations {
    let all = [
        (
            "001_users",
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT); -- with a comment; and one more\nCREATE INDEX by_name ON users (name)",
        ),
        ("002_ada", "INSERT INTO users (name) VALUES ('Ada; Eve')"),
        (
            "003_trigger",
            "CREATE TRIGGER t AFTER INSERT ON users BEGIN UPDATE users SET name = 'x' WHERE 0; SELECT 1; END",
        ),
    ];
    Migrations::new(all.into_iter().take(number))
}

#[test]
fn each_migration_is_applied_once_by_whichever_program_comes_first() {
    let double = Double::start();
    double.order(&json!({ "chance": 0.2, "seed": 11 }));
    let remotes: Vec<_> = (0..4).map(|_| double.connect()).collect();
    runtime().block_on(async {
        let applied = join_all(remotes.iter().map(|remote| remote.migrate(list(3)))).await;
        let mut names: Vec<String> = applied.into_iter().flat_map(Result::unwrap).collect();
        names.sort();
        assert_eq!(names, ["001_users", "002_ada", "003_trigger"]);
        let users: Vec<String> = remotes[0].query_values("SELECT name FROM users", ()).await.unwrap();
        assert_eq!(users, ["Ada; Eve"]);
        assert!(remotes[1].migrate(list(3)).await.unwrap().is_empty());
    });
}

#[test]
fn a_migration_that_cannot_be_applied_is_named_and_those_before_it_stay() {
    let double = Double::start();
    let remote = double.connect();
    let with = |name: &'static str, sql: &'static str| Migrations::new([("001_a", "CREATE TABLE a (x)"), (name, sql)]);
    runtime().block_on(async {
        let error = remote.migrate(with("002_b", "CREATE TABLE b (x); INSERT INTO c VALUES (1)")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sql);
        assert!(error.to_string().contains("002_b") && error.sql() == Some("INSERT INTO c VALUES (1)"), "{error}");
        let tables: Vec<String> =
            remote.query_values("SELECT name FROM sqlite_schema WHERE name IN ('a', 'b')", ()).await.unwrap();
        assert_eq!(tables, ["a"]);
        // Foreign keys are enforced, so the rows that refer to a table would go with it.
        double.order(&json!({ "foreign_keys": true }));
        let referred = "CREATE TABLE t (a PRIMARY KEY); CREATE TABLE u (a REFERENCES T ON DELETE CASCADE);
            INSERT INTO t VALUES (1); INSERT INTO u VALUES (1)";
        remote.execute_script(referred).await.unwrap();
        let rebuilt = "CREATE TABLE new (a PRIMARY KEY, b);\nINSERT INTO new SELECT a, 1 FROM t;
            DROP TABLE \"t\"; ALTER TABLE new RENAME TO t";
        let error = remote.migrate(with("002_b", rebuilt)).await.unwrap_err();
        assert!(error.message().contains("002_b: to drop the table t") && error.hint().is_some(), "{error}");
        assert_eq!(remote.query_value::<i64>("SELECT count(*) FROM u", ()).await.unwrap(), 1);
        // Also those of a table that the same migration makes, or brings the references of another one to.
        let own =
            "CREATE TABLE n (a PRIMARY KEY, b REFERENCES v ON DELETE CASCADE); DROP TABLE v; ALTER TABLE n RENAME TO v";
        let renamed = "ALTER TABLE t RENAME TO w; DROP TABLE W";
        for sql in [own, renamed] {
            let error = remote.migrate(with("002_b", sql)).await.unwrap_err();
            assert!(error.message().contains("tables of the migration"), "{error}");
        }
        let outside = with("002_b", "-- no-transaction\nVACUUM");
        assert_eq!(remote.migrate(outside).await.unwrap_err().kind(), ErrorKind::Misuse);
        let changed = Migrations::new([("001_a", "CREATE TABLE a (y)")]);
        assert!(remote.migrate(changed).await.unwrap_err().to_string().contains("changed"));
        let older = Migrations::new(Vec::<(String, String)>::new());
        assert!(remote.migrate(older).await.unwrap_err().to_string().contains("newer"));
    });
}
