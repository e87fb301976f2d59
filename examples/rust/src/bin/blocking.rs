//! Plain threads without a runtime: each thread waits for its calls.

use std::thread;

use flatwater::Options;

fn main() -> flatwater::Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let db = Options::new(directory.path().join("blocking.db")).open().wait()?;
    db.execute("CREATE TABLE visits (page TEXT PRIMARY KEY, count INTEGER NOT NULL)", ()).wait()?;

    let threads: Vec<_> = (0..4)
        .map(|_| {
            let db = db.clone();
            thread::spawn(move || visit(&db, "/home", 25))
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread panics")?;
    }
    let visits: Vec<(String, i64)> = db.query_as("SELECT page, count FROM visits", ()).wait()?;
    for (page, count) in visits {
        println!("{page}: {count} visits");
    }
    db.close().wait()
}

fn visit(db: &flatwater::Database, page: &str, times: usize) -> flatwater::Result<()> {
    for _ in 0..times {
        db.execute("INSERT INTO visits VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1", (page,)).wait()?;
    }
    Ok(())
}
