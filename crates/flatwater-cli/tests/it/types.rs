//! Functions and types that are made of SQL: the same for three languages.

use std::path::Path;

use crate::support::Place;

/// The crate that compiles and runs what is made in Rust.
fn project() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../flatwater-macros").display().to_string()
}

/// After a change of what is made, `flatwater types` without `--check` writes it anew.
#[test]
fn what_is_made_is_what_was_committed() {
    let (place, project) = (Place::new(), project());
    let file = |name: &str| format!("{project}/tests/generated/{name}");
    let (queries, typescript, python) = (format!("{project}/queries"), file("queries.ts"), file("queries.py"));
    let (rust, kysely, standard) = (file("queries.rs"), file("kysely.ts"), file("standard.py"));
    let made = ["types", &queries, "--project", &project, "--typescript", &typescript, "--python", &python];
    assert_eq!(place.run(&[&made[..], &["--rust", &rust, "--kysely", &kysely, "--check"]].concat()).ok(), "");
    let made = ["types", &queries, "--project", &project, "--python", &standard, "--standard", "--check"];
    assert_eq!(place.run(&made).ok(), "");
}

#[test]
fn a_query_that_is_wrong_is_named_and_nothing_is_written() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("migrations")).unwrap();
    place.write("migrations/1_a.sql", "CREATE TABLE t (id INTEGER PRIMARY KEY);");
    let sql = "-- name: A :one\nSELECT id FROM t;\n-- name: a :many\nSELECT id FROM t;\n-- name: B :one\nDELETE FROM t;\n\
        -- name: C :exec\nSELECT id FROM t;\n-- name: D :all\nSELECT id FROM t;\n-- name: E\nSELECT id FROM t;\n\
        -- name: F :many\nSELECT idd FROM t;\nSELECT nothing;\n-- name: G :many\nSELECT id, id FROM t;";
    place.write("q.sql", sql);
    let ended = place.run(&["types", "q.sql", "--rust", "q.rs"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    let commands = ":one, :optional, :many, :exec, :execrows, :execlastid";
    let expected = [
        "q.sql:4:1: two queries are called a".to_owned(),
        "q.sql:6:1: B is :one and returns no rows".to_owned(),
        "q.sql:8:1: C is :exec and returns rows".to_owned(),
        format!("q.sql:10:1: :all is not one of {commands}"),
        format!("q.sql:12:1: an annotation is `-- name: GetUser :one`; the commands are {commands}"),
        "q.sql:14:8: no such column: idd (there is a column id in t, made by the migration 1_a)".to_owned(),
        "q.sql:17:1: G returns two columns called id: use AS".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert_eq!((ended.code, place.path("q.rs").exists()), (3, false));
}

#[test]
fn a_file_that_is_out_of_date_is_named() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("migrations")).unwrap();
    place.write("migrations/1_a.sql", "CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME NOT NULL);");
    let check = ["types", "--kysely", "db.ts", "--check"];
    assert_eq!(place.run(&check).out, "db.ts is out of date: run `flatwater types`\n");
    place.run(&["types", "--kysely", "db.ts"]).ok();
    assert_eq!(place.run(&check).ok(), "");
    assert!(place.read("db.ts").contains("  id: Generated<number>;\n  at: string;\n"));
    assert_eq!(place.run(&["types", "--kysely", "db.ts", "--check", "--standard"]).code, 3);
    place.run(&["types"]).failed(2);
}
