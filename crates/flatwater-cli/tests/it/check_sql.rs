//! SQL in sources of several languages, checked without a database.

use crate::support::Place;

fn project() -> Place {
    let place = Place::new();
    for folder in ["migrations", "src", "node_modules/x", "queries"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.write(
        "migrations/001_init.sql",
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, boss REFERENCES users);",
    );
    place.write("queries/users.sql", "SELECT name FROM users;\n\n-- name: Wrong :many\nSELECT nmae\n  FROM users;\n");
    place.write("src/main.rs", "fn f() { query!(\"SELECT id FROM user\"); query!(\"SELECT id FROM users\"); }");
    place.write(
        "src/app.ts",
        "const a: User[] = await db.query<User>(`SELECT id\n  FROM users WHERE mail = ?`, [1]);\n",
    );
    place.write("src/app.py", "await db.execute('INSERT INTO users VALUES (1)')\nawait db.execute(sql)\n");
    place.write(
        "src/part.ts",
        "db.query(sql`SELECT id FROM users ${where}`); db.query(sql`SELECT x FROM users ${where}`)",
    );
    place.write("node_modules/x/x.js", "db.query('SELECT nothing')");
    place
}

#[test]
fn each_fault_has_its_place_and_what_to_do() {
    let place = project();
    let ended = place.run(&["check-sql"]);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert_eq!(
        lines,
        [
            "queries/users.sql:4:8: no such column: nmae (there is a column name in users, made by the migration 001_init)",
            "src/app.py:1:19: table users has 3 columns but 1 values were supplied",
            "src/app.ts:2:20: no such column: mail (users has the columns id, name, boss, made by the migration 001_init)",
            "src/main.rs:1:18: no such table: user (there is a table users, made by the migration 001_init)",
        ]
    );
    assert_eq!((ended.code, &*ended.err), (3, ""));
    assert_eq!(place.run(&["check-sql", "src/part.ts"]).ok(), "");
}

#[test]
fn programs_read_other_forms() {
    let place = project();
    let github = place.run(&["check-sql", "queries", "--format", "github"]).out;
    assert!(github.starts_with("::error file=queries/users.sql,line=4,col=8::no such column: nmae"), "{github}");
    let json = place.run(&["check-sql", "queries", "--format", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["file"], &json[0]["line"]), (&"queries/users.sql".into(), &4.into()));
    assert_eq!(place.run(&["check-sql", "src/part.ts", "--format", "json"]).ok(), "[]\n");
}

#[test]
fn a_plan_names_scans_and_keys_without_an_index() {
    let place = project();
    place.write("queries/users.sql", "SELECT name FROM users WHERE id = ?; SELECT id FROM users WHERE name = ?;");
    let out = place.run(&["check-sql", "queries", "--plan"]).out;
    let expected = "migrations:1:1: the foreign key (boss) of users has no index \
        (deleting a parent reads every row: CREATE INDEX users_by_boss ON users (boss))\n\
        queries/users.sql:1:38: every row of users is read (an index of what it is searched by may help)\n";
    assert_eq!(out, expected);
}

#[test]
fn a_project_without_migrations_is_an_error_of_its_own() {
    let place = Place::new();
    let error = place.run(&["check-sql"]).failed(1);
    assert!(error.contains("migrations cannot be read") && error.contains("flatwater.toml"), "{error}");
    place.write("flatwater.toml", "migration = 'x'");
    assert!(place.run(&["check-sql"]).failed(1).contains("migration is not a key of flatwater"));
}
