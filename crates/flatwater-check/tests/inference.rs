//! What is said of single texts: each rule by an example.

mod support;

use flatwater_check::{Checked, Database, Fault, Schema};

use support::schema;

fn check(sql: &str) -> Result<Checked, Fault> {
    schema().check(sql)
}

/// The columns of a result: `name KIND`, with a `?` if NULL may come.
fn columns(schema: &mut Schema, sql: &str) -> String {
    let checked = schema.check(sql).unwrap_or_else(|fault| panic!("{sql}: {fault:?}"));
    let column = |column: &flatwater_check::Column| {
        format!("{} {}{}", column.name, column.kind.name(), if column.nullable { "?" } else { "" })
    };
    checked.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

#[test]
fn columns_have_the_type_and_nullability_that_follow() {
    let (mut schema, mut faults) = (schema(), Vec::new());
    for (sql, expected) in [
        (
            "SELECT id, name, email, active, born FROM users",
            "id INTEGER, name TEXT, email TEXT?, active BOOLEAN, born DATE?",
        ),
        ("SELECT count(*) AS n, max(id) AS top FROM users", "n INTEGER, top INTEGER?"),
        ("SELECT u.name, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id", "name TEXT, id INTEGER?"),
        ("SELECT u.name, o.id FROM users u JOIN orders o ON o.user_id = u.id", "name TEXT, id INTEGER"),
        ("SELECT u.name, o.id FROM users u RIGHT JOIN orders o ON o.user_id = u.id", "name TEXT?, id INTEGER"),
        ("SELECT u.name, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id", "name TEXT?, id INTEGER?"),
        ("SELECT status, count(*) AS n FROM orders GROUP BY status", "status TEXT, n INTEGER"),
        (
            "SELECT user_id, status, max(id) AS last FROM orders GROUP BY 1, 2 HAVING count(*) > 1",
            "user_id INTEGER, status TEXT, last INTEGER",
        ),
        ("SELECT max(id) AS top, name FROM users", "top INTEGER?, name TEXT?"),
        ("SELECT n FROM facts UNION ALL SELECT NULL", "n INTEGER?"),
        ("SELECT n FROM facts UNION SELECT t FROM facts", "n ANY"),
        ("SELECT coalesce(email, name) AS mail, coalesce(email, 'none') AS m FROM users", "mail TEXT, m TEXT"),
        (
            "SELECT CASE WHEN active THEN name END AS x, CASE WHEN active THEN name ELSE '' END AS y FROM users",
            "x TEXT?, y TEXT",
        ),
        ("SELECT (SELECT name FROM users WHERE id = 1) AS x, EXISTS (SELECT 1 FROM users) AS y", "x TEXT?, y INTEGER"),
        ("WITH x AS (SELECT id, name FROM users) SELECT * FROM x", "id INTEGER, name TEXT"),
        ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 9) SELECT n FROM c", "n INTEGER"),
        ("SELECT name FROM users ORDER BY score, name LIMIT 5", "name TEXT"),
        ("SELECT DISTINCT status FROM orders ORDER BY note", "status TEXT"),
        (
            "SELECT sum(n) AS x, avg(n) AS y, total(n) AS z, group_concat(t) AS g FROM facts",
            "x INTEGER?, y REAL?, z REAL, g TEXT?",
        ),
        (
            "SELECT m IS NULL AS x, n = 1 AS y, m = 1 AS z, t LIKE 'a%' AS l FROM facts",
            "x INTEGER, y INTEGER, z INTEGER?, l INTEGER",
        ),
        (
            "SELECT n + 1 AS x, n * m AS y, n / 2 AS z, n / n AS w FROM facts",
            "x INTEGER, y INTEGER?, z INTEGER, w INTEGER?",
        ),
        ("SELECT twice, shout, added, maybe FROM facts", "twice INTEGER, shout TEXT, added INTEGER, maybe TEXT?"),
        ("SELECT k, v FROM pairs WHERE k = 'a'", "k TEXT, v INTEGER?"),
        ("SELECT id FROM keys_desc", "id INTEGER?"),
        ("SELECT a, b, e, d, h FROM loose", "a ANY?, b INTEGER?, e ANY?, d DECIMAL?, h INTEGER"),
        ("SELECT * FROM user_totals", "id INTEGER, name TEXT, orders INTEGER, total REAL?"),
        ("SELECT text FROM both_texts", "text TEXT?"),
        (
            "SELECT row_number() OVER (ORDER BY n) AS i, lag(n) OVER (ORDER BY n) AS l FROM facts",
            "i INTEGER, l INTEGER?",
        ),
        ("SELECT title, rowid FROM docs WHERE docs MATCH 'x'", "title ANY?, rowid INTEGER"),
        ("SELECT key, value FROM json_each('[1]')", "key ANY?, value ANY?"),
        ("SELECT slug(name) AS s, name COLLATE german AS c FROM users", "s TEXT, c TEXT"),
        ("SELECT median(score) AS m FROM users", "m REAL?"),
        ("SELECT o.title, f.n FROM archive.old o LEFT JOIN facts f ON f.id = o.id", "title TEXT, n INTEGER?"),
        ("INSERT INTO users (name) VALUES (?) RETURNING id, name, email", "id INTEGER, name TEXT, email TEXT?"),
        ("INSERT INTO pairs VALUES (?, ?) ON CONFLICT DO UPDATE SET v = v + 1 RETURNING k, v", "k TEXT, v INTEGER?"),
        ("UPDATE orders SET status = ? WHERE id = ? RETURNING id, status, note", "id INTEGER, status TEXT, note TEXT?"),
        ("DELETE FROM orders RETURNING id, total", "id INTEGER, total REAL"),
        (
            "SELECT CURRENT_TIMESTAMP AS x, date('now') AS y, NULL AS z, 1.5 AS r, x'00' AS b",
            "x TEXT, y TEXT?, z ANY?, r REAL, b BLOB",
        ),
        ("PRAGMA table_info(users)", "cid ANY?, name ANY?, type ANY?, notnull ANY?, dflt_value ANY?, pk ANY?"),
        ("SELECT id AS \"id!: UserId\" FROM users", "id!: UserId INTEGER"),
        ("UPDATE users SET name = 'x'", ""),
    ] {
        let found = columns(&mut schema, sql);
        if found != expected {
            faults.push(format!("{sql}\n  found    {found}\n  expected {expected}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn parameters_have_the_type_of_what_they_are_compared_with_or_stored_in() {
    let mut schema = schema();
    for (sql, expected) in [
        ("SELECT 1 FROM users WHERE id = ?", "INTEGER"),
        ("SELECT 1 FROM users WHERE email = :mail AND score > @least", "mail TEXT, least REAL"),
        ("INSERT INTO users (id, name, email) VALUES (?, ?, ?)", "INTEGER, TEXT, TEXT?"),
        ("INSERT INTO pairs (k, v) VALUES (?1, ?2)", "TEXT, INTEGER?"),
        ("UPDATE orders SET note = :note WHERE user_id = :user AND status = 'new'", "note TEXT?, user INTEGER"),
        ("SELECT 1 FROM users LIMIT ? OFFSET ?", "INTEGER, INTEGER"),
        ("SELECT 1 FROM pairs WHERE k = ?", "TEXT"),
        ("SELECT 1 FROM users WHERE id = ? OR name = ?1", "ANY"),
        ("SELECT ?", "ANY?"),
        ("DELETE FROM items WHERE order_id = ? AND line = ?", "INTEGER, INTEGER"),
        ("SELECT 1 FROM users WHERE active = ?", "BOOLEAN"),
    ] {
        let checked = schema.check(sql).unwrap();
        let parameter = |parameter: &flatwater_check::Parameter| {
            let name = parameter.name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            format!("{name}{}{}", parameter.kind.name(), if parameter.nullable { "?" } else { "" })
        };
        assert_eq!(checked.parameters.iter().map(parameter).collect::<Vec<_>>().join(", "), expected, "{sql}");
    }
}

#[test]
fn a_fault_has_its_place_and_what_to_do() {
    for (sql, message, offset, hint) in [
        (
            "SELECT nmae FROM users",
            "no such column: nmae",
            Some(7),
            "there is a column name in users, made by the migration 001_shop",
        ),
        ("SELECT 1 FROM user", "no such table: user", None, "there is a table users, made by the migration 001_shop"),
        ("SELECT 1 FROM elsewhere", "no such table: elsewhere", None, "no migration makes it"),
        ("SELECT sulg(1)", "no such function: sulg", None, "there is a function slug"),
        ("SELECT quark_of(1)", "no such function: quark_of", None, "[functions.quark_of]"),
        (
            "SELECT zzzzzz FROM pairs",
            "no such column: zzzzzz",
            Some(7),
            "pairs has the columns k, v, made by the migration 001_shop",
        ),
        ("SELECT 1; SELECT 2", "several statements", Some(10), "batch"),
        ("BEGIN", "transactions", None, "`transaction`"),
        ("CREATE TABLE x (a)", "changes the schema", None, "write another migration"),
        ("ATTACH 'x' AS y", "attached", None, "option"),
        ("SELEC 1", "near \"SELEC\": syntax error", Some(0), ""),
        (" -- nothing", "no statement", None, ""),
    ] {
        let fault = check(sql).unwrap_err();
        assert!(fault.message.contains(message), "{sql}: {fault:?}");
        assert!(offset.is_none() || fault.offset == offset, "{sql}: {fault:?}");
        assert!(fault.hint.as_deref().unwrap_or_default().contains(hint), "{sql}: {fault:?}");
    }
}

#[test]
fn a_migration_that_fails_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("1_a.sql"), "CREATE TABLE t (a CHECK (slug(a)));\n").unwrap();
    let database = Database { migrations: folder.path().to_owned(), ..Database::default() };
    let fault = Schema::new(&database).err().unwrap();
    assert!(fault.message.starts_with("the migration 1_a: ") && fault.hint.unwrap().contains("flatwater.toml"));
}
