use flatwater::{query, query_value};

fn main() {
    let _ = query!("SELEC 1");
    let _ = query!("SELECT id,\n    nmae\nFROM users");
    let _ = query!("SELECT 1 FROM user");
    let _ = query!("INSERT INTO users (name, emial) VALUES ('a', 'b')");
    let _ = query!("SELECT sulg(name) FROM users");
    let _ = query!("SELECT 1; SELECT 2");
    let _ = query!("-- nothing");
    let _ = query!("CREATE TABLE t (a)");
    let _ = query!("BEGIN");
    let _ = query!("ATTACH 'a' AS b");
    let _ = query!(database = "audit", "SELECT 1");
    let _ = query!(schema = "audit", "SELECT 1");
    let _ = query!("SELECT count(*) FROM users");
    let _ = query!("SELECT id, id FROM users");
    let _ = query!("SELECT id AS \"id: Vec<\" FROM users");
    let _ = query!("SELECT id AS \"id: _\" FROM users");
    let _ = query_value!("SELECT id, name FROM users");
    let _ = query_value!("DELETE FROM users");
}
