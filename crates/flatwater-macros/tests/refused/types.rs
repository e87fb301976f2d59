use flatwater::{query, query_as};

struct User {
    id: i64,
    name: String,
}

struct Mail {
    email: String,
}

struct Small {
    id: i32,
}

fn main() {
    let _ = query_as!(User, "SELECT id FROM users");
    let _ = query_as!(User, "SELECT id, name, email FROM users");
    let _ = query_as!(Mail, "SELECT email FROM users");
    let _ = query_as!(Small, "SELECT id FROM users");
    let _ = query_as!(User, "DELETE FROM users");
    let _ = query!("DELETE FROM users").one(todo!());
    let _ = async |db: flatwater::Database| {
        let user = query!("SELECT email FROM users").one(&db).await.unwrap();
        user.email.len()
    };
}
