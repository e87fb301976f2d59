//! `flatwater migrate`.

use crate::support::Place;

#[test]
fn migrations_are_made_checked_and_applied() {
    let place = Place::new();
    let first = place.run(&["migrate", "new", "create users"]).ok();
    assert_eq!(first.trim_end().replace('\\', "/"), "migrations/001_create_users.sql");
    place.write("migrations/001_create_users.sql", "CREATE TABLE users (id INTEGER PRIMARY KEY);");
    place.run(&["migrate", "new", "e-mail"]).ok();
    place.write("migrations/002_e_mail.sql", "ALTER TABLE users ADD COLUMN email TEXT;");

    assert_eq!(place.run(&["migrate", "status", "app.db"]).ok(), "missing 001_create_users\nmissing 002_e_mail\n");
    let check = place.run(&["migrate", "check", "app.db", "--applied"]);
    assert_eq!((check.code, check.out.lines().count()), (3, 2));
    assert!(!place.path("app.db").exists(), "a check changes nothing");

    let applied = place.run(&["migrate", "run", "app.db"]).ok();
    assert_eq!(applied, "applied 001_create_users\napplied 002_e_mail\n");
    assert_eq!(place.run(&["migrate", "run", "app.db"]).ok(), "all migrations are applied\n");
    place.run(&["migrate", "check", "app.db", "--applied"]).ok();
    let status = place.run(&["migrate", "status", "app.db"]).ok();
    assert!(status.lines().all(|line| line.starts_with("applied 00")), "{status}");
}

#[test]
fn a_migration_that_fails_is_found_before_it_is_applied() {
    let place = Place::with("CREATE TABLE users (id INTEGER PRIMARY KEY)");
    std::fs::create_dir(place.path("changes")).unwrap();
    place.write("changes/1_wrong.sql", "ALTER TABLE nobody ADD COLUMN a");
    let error = place.run(&["migrate", "check", "app.db", "--dir", "changes"]).failed(1);
    assert!(error.contains("migration 1_wrong, line 1: no such table: nobody"), "{error}");
    place.write("changes/1_wrong.sql", "ALTER TABLE users ADD COLUMN a");
    place.run(&["migrate", "run", "app.db", "--dir", "changes"]).ok();
    place.write("changes/1_wrong.sql", "ALTER TABLE users ADD COLUMN b");
    let error = place.run(&["migrate", "check", "app.db", "--dir", "changes"]).failed(1);
    assert!(error.contains("1_wrong"), "{error}");
    std::fs::remove_file(place.path("changes/1_wrong.sql")).unwrap();
    place.write("changes/2_next.sql", "SELECT 1");
    let status = place.run(&["migrate", "status", "app.db", "--dir", "changes"]).ok();
    assert!(status.starts_with("no file 1_wrong") && status.ends_with("missing 2_next\n"), "{status}");
}
