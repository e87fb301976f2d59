//! The columns of a result: names, declared types, and where they come from.

use flatwater::{Database, ErrorKind, Rows};

use crate::place::{Place, in_both_places};
use crate::support::TestFile;

in_both_places!(
    a_column_knows_its_name_its_type_and_its_origin,
    an_empty_result_and_a_first_row_have_their_columns,
    columns_follow_the_schema,
    a_row_is_walked_by_position,
);

const SCHEMA: &str = "
    CREATE TABLE \"my users\" (id INTEGER PRIMARY KEY, name VARCHAR( 20 ) NOT NULL, born \"DATE TIME\", any);
    CREATE VIEW named AS SELECT id AS number, upper(name) AS loud, name FROM \"my users\";
    INSERT INTO \"my users\" (name) VALUES ('Ada');";

type Told<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// Name, declared type, database, table and origin of each column.
fn told(rows: &Rows) -> Vec<Told<'_>> {
    let columns = (0..rows.columns().len()).map(|column| rows.column(column).unwrap());
    columns
        .map(|column| {
            (column.name(), column.decl_type(), column.database_name(), column.table_name(), column.origin_name())
        })
        .collect()
}

async fn users(place: &Place) -> Database {
    let db = place.open().await;
    db.execute_script(SCHEMA).await.unwrap();
    db
}

fn of_users<'a>(name: &'a str, declared: Option<&'a str>, origin: &'a str) -> Told<'a> {
    (name, declared, Some("main"), Some("my users"), Some(origin))
}

async fn a_column_knows_its_name_its_type_and_its_origin(place: &Place) {
    let db = users(place).await;
    // Several times: the later ones may run inline.
    for _ in 0..4 {
        let rows = db.query("SELECT *, u.id AS again, id + 1, 'x' AS x FROM \"my users\" AS u", ()).await.unwrap();
        let expected = [
            of_users("id", Some("INTEGER"), "id"),
            of_users("name", Some("VARCHAR( 20 )"), "name"),
            of_users("born", Some("DATE TIME"), "born"),
            of_users("any", None, "any"),
            of_users("again", Some("INTEGER"), "id"),
            ("id + 1", None, None, None, None),
            ("x", None, None, None, None),
        ];
        assert_eq!(told(&rows), expected);
        assert_eq!(rows.column("AGAIN").unwrap().origin_name(), Some("id"));
        assert_eq!(rows.column("no").unwrap_err().kind(), ErrorKind::Misuse);
        let rows = db.query("SELECT n.* FROM (SELECT * FROM named) AS n", ()).await.unwrap();
        let expected = [
            of_users("number", Some("INTEGER"), "id"),
            ("loud", None, None, None, None),
            of_users("name", Some("VARCHAR( 20 )"), "name"),
        ];
        assert_eq!(told(&rows), expected);
        let rows = db.query("UPDATE \"my users\" SET any = 1 RETURNING name AS n, any", ()).await.unwrap();
        assert_eq!(told(&rows).iter().map(|column| column.0).collect::<Vec<_>>(), ["n", "any"]);
    }
    db.close().await.unwrap();
}

#[test]
fn a_column_of_an_attached_file_names_it() {
    let file = TestFile::new();
    let other = file.beside("-other");
    crate::support::run(async {
        let db = file.options().tuning(|t| t.attach("other", &other)).open().await.unwrap();
        db.execute("CREATE TABLE other.t (a BLOB)", ()).await.unwrap();
        let rows = db.query("SELECT a FROM t", ()).await.unwrap();
        assert_eq!(told(&rows), [("a", Some("BLOB"), Some("other"), Some("t"), Some("a"))]);
        db.close().await.unwrap();
    });
}

async fn an_empty_result_and_a_first_row_have_their_columns(place: &Place) {
    let db = users(place).await;
    let rows = db.query("SELECT name FROM \"my users\" WHERE id = 9", ()).await.unwrap();
    assert!(rows.is_empty());
    assert_eq!(told(&rows), [of_users("name", Some("VARCHAR( 20 )"), "name")]);
    let first = db.query_optional("SELECT born FROM \"my users\"", ()).await.unwrap().unwrap();
    assert_eq!(first.column(0).unwrap().decl_type(), Some("DATE TIME"));
    let inside = db.transaction(async |tx| tx.query("SELECT any AS a FROM \"my users\"", ()).await).await.unwrap();
    assert_eq!(told(&inside), [of_users("a", None, "any")]);
    db.close().await.unwrap();
}

async fn columns_follow_the_schema(place: &Place) {
    let db = place.open().await;
    db.execute("CREATE TABLE t (c0 T0)", ()).await.unwrap();
    for next in 1..6 {
        for _ in 0..4 {
            let rows = db.query("SELECT * FROM t", ()).await.unwrap();
            assert_eq!(rows.columns().len(), next);
            for (at, column) in told(&rows).into_iter().enumerate() {
                let (name, declared) = (format!("c{at}"), format!("T{at}"));
                assert_eq!(column, (&*name, Some(&*declared), Some("main"), Some("t"), Some(&*name)));
            }
        }
        let add = format!("ALTER TABLE t ADD COLUMN c{next} T{next}");
        match place.file() {
            Some(file) if next % 2 == 0 => file.plain().execute_batch(&add).unwrap(),
            _ => drop(db.execute(&add, ()).await.unwrap()),
        }
    }
    db.close().await.unwrap();
}

async fn a_row_is_walked_by_position(place: &Place) {
    use flatwater::ValueRef::{Blob, Integer, Null, Real, Text};
    let db = place.open().await;
    let sql = "VALUES (1, 'a', NULL, 0.5, x'00'), (2, '', NULL, -1.0, x'')";
    let rows = db.query(sql, ()).await.unwrap();
    let expected =
        [[Integer(1), Text(b"a"), Null, Real(0.5), Blob(b"\0")], [Integer(2), Text(b""), Null, Real(-1.0), Blob(b"")]];
    assert_eq!(rows.len(), expected.len());
    for (row, expected) in rows.iter().zip(expected) {
        assert_eq!(row.values().collect::<Vec<_>>(), expected);
    }
    let first = db.query_optional(sql, ()).await.unwrap().unwrap();
    assert_eq!(first.values().len(), 5);
    db.close().await.unwrap();
}
