fn start(db: &flatwater::Database) {
    tokio::spawn(async { db.execute("DELETE FROM sessions", ()).await });
}

fn main() {}
