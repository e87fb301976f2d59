use flatwater::query;

fn main() {
    let _ = query!("SELECT id FROM users WHERE id = ?");
    let _ = query!("SELECT id FROM users WHERE id = ?", 1, 2);
    let _ = query!("SELECT id FROM users WHERE id = :id", name = 1);
    let _ = query!("SELECT id FROM users WHERE id = :id AND name = :name", id = 1);
    let _ = query!("SELECT id FROM users WHERE id = :id", id = 1, id = 2);
    let _ = query!("SELECT id FROM users WHERE id = :id", id = 1, 2);
    let _ = query!("SELECT id FROM users WHERE id = ?", "one");
    let _ = query!("UPDATE users SET name = ?", 1_i64);
    let _ = query!("SELECT id FROM users WHERE name = ?", Some(vec![0_u8]));
    let _ = query!("SELECT id FROM users WHERE id = ?", std::time::Instant::now());
}
