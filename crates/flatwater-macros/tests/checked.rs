//! The macros in a program: what they return, on what they run, and what is made of values.

use flatwater::{Database, Options, Result, Session, query, query_as, query_file, query_value};

fn open() -> Database {
    let script = include_str!("../migrations/001_shop.sql");
    let options = Options::new(":memory:").migrations([("001_shop", script)]);
    let db = options.open().wait().unwrap();
    for (name, email) in [("Ada", Some("ada@example.org")), ("Bob", None)] {
        query!("INSERT INTO users (name, email) VALUES (?, ?)", name, email).execute(&db).wait().unwrap();
    }
    db
}

#[derive(Debug, PartialEq)]
struct UserId(i64);

impl From<i64> for UserId {
    fn from(id: i64) -> Self {
        Self(id)
    }
}

#[derive(Debug, PartialEq)]
struct User {
    id: UserId,
    name: String,
    email: Option<String>,
}

#[test]
fn a_row_is_a_struct_with_a_field_for_each_column() {
    let db = open();
    let users = query!("SELECT id, name, email, active, born FROM users ORDER BY id").all(&db).wait().unwrap();
    let (id, name, email): (i64, &str, &Option<String>) = (users[0].id, &users[0].name, &users[0].email);
    assert_eq!((id, name, email.as_deref()), (1, "Ada", Some("ada@example.org")));
    let (active, born): (bool, &Option<String>) = (users[1].active, &users[1].born);
    assert_eq!((active, born, &users[1].email), (true, &None, &None));
    assert!(format!("{:?}", users[0]).starts_with("Record { id: 1"));
}

#[test]
fn a_named_struct_is_made_from_the_columns() {
    let db = open();
    let user = query_as!(User, "SELECT id, name, email FROM users WHERE name = ?", "Ada").one(&db).wait().unwrap();
    let email = Some("ada@example.org".to_owned());
    assert_eq!(user, User { id: UserId(1), name: "Ada".to_owned(), email });
    let none =
        query_as!(User, "SELECT id, name, email FROM users WHERE id = :id", id = 9).optional(&db).wait().unwrap();
    assert_eq!(none, None);
}

#[test]
fn a_label_says_more_than_was_found() {
    struct Small {
        id: i32,
        mail: String,
        name: Option<String>,
    }
    let db = open();
    let sql = query_as!(
        Small,
        "SELECT id AS \"id: _\", email AS \"mail!\", " + "name AS \"name?\" FROM users WHERE email IS NOT NULL"
    );
    let small = sql.one(&db).wait().unwrap();
    assert_eq!((small.id, &*small.mail, small.name.as_deref()), (1, "ada@example.org", Some("Ada")));
    let row = query!("SELECT count(*) AS \"n: u8\" FROM users").one(&db).wait().unwrap();
    assert_eq!(row.n, 2_u8);
}

#[test]
fn a_value_is_the_only_column() {
    let db = open();
    let count: i64 = query_value!("SELECT count(*) FROM users").one(&db).wait().unwrap();
    let mails: Vec<Option<String>> = query_value!("SELECT email FROM users ORDER BY id").all(&db).wait().unwrap();
    assert_eq!((count, mails), (2, vec![Some("ada@example.org".to_owned()), None]));
}

#[test]
fn a_text_may_be_in_a_file() {
    let db = open();
    let user = query_file!("queries/user.sql", name = "Bob").one(&db).wait().unwrap();
    assert_eq!((user.id, user.email), (2, None));
}

#[test]
fn a_statement_runs_on_databases_transactions_and_snapshots() -> Result<()> {
    fn count(on: &Session) -> Result<i64> {
        query_value!("SELECT count(*) FROM users").one(on).wait()
    }
    let db = open();
    let tx = db.begin().wait()?;
    let id: i64 =
        query_value!("INSERT INTO users (name) VALUES (?) RETURNING id", String::from("Eve")).one(&tx).wait()?;
    assert_eq!((id, count(&tx)?), (3, 3));
    tx.rollback().wait()?;
    assert_eq!(count(&db)?, 2);
    Ok(())
}

#[test]
fn rows_come_one_by_one_and_again_after_a_change() -> Result<()> {
    let db = open();
    let mut names = Vec::new();
    let mut rows = query!("SELECT name FROM users ORDER BY id").stream(&db);
    while let Some(row) = wait(rows.next()) {
        names.push(row?.name);
    }
    assert_eq!(names, ["Ada", "Bob"]);
    let mut live = query!("SELECT name FROM users ORDER BY id").live(&db);
    assert_eq!(wait(live.next()).unwrap()?.len(), 2);
    query!("DELETE FROM users WHERE id = ?", 1).execute(&db).wait()?;
    assert_eq!(wait(live.next()).unwrap()?[0].name, "Bob");
    Ok(())
}

/// Polls a future on this thread until it is ready.
fn wait<F: std::future::Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);
    impl std::task::Wake for Thread {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Thread(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn values_are_evaluated_once_and_may_be_temporary_or_of_any_type() {
    let db = open();
    let mut calls = 0;
    let mut next = || {
        calls += 1;
        calls
    };
    query!("UPDATE users SET score = ? WHERE id = ?", f64::from(next()), next()).execute(&db).wait().unwrap();
    assert_eq!(calls, 2);
    let score = query_value!("SELECT score FROM users WHERE name = ?", &"Bob".to_string()).one(&db).wait().unwrap();
    assert_eq!(score, Some(1.0));
    let any = flatwater::Value::Integer(1);
    let name = query_value!("SELECT name FROM users WHERE id = ?", any).one(&db).wait().unwrap();
    let optional = query_value!("SELECT name FROM users WHERE id = ?", Some(&1_i64)).one(&db).wait().unwrap();
    assert_eq!((&*name, &*optional), ("Ada", "Ada"));
}
