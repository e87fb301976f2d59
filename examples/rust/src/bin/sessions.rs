//! The sessions of a web service in a table: a store for the crate tower-sessions, of which `main` does by hand what its layer does.

use flatwater::values::Json;
use flatwater::{Database, Error, ErrorKind, Result};
use time::{Duration, OffsetDateTime};
use tower_sessions_core::session::{Id, Record};
use tower_sessions_core::session_store::{self, ExpiredDeletion, SessionStore};

/// Sessions in the table `sessions`. A clone is another handle of the same.
#[derive(Debug, Clone)]
struct Store(Database);

impl Store {
    async fn open(db: Database) -> Result<Self> {
        db.execute_script(
            "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, record TEXT NOT NULL, ends INTEGER NOT NULL) STRICT, WITHOUT ROWID;
             CREATE INDEX IF NOT EXISTS sessions_end ON sessions (ends)",
        )
        .await?;
        Ok(Self(db))
    }
}

/// What the store's user is told: of its own kind, for a row that cannot be read.
fn told(error: Error) -> session_store::Error {
    match error.kind() {
        ErrorKind::Decode => session_store::Error::Decode(error.to_string()),
        _ => session_store::Error::Backend(error.to_string()),
    }
}

#[async_trait::async_trait]
impl SessionStore for Store {
    async fn create(&self, record: &mut Record) -> session_store::Result<()> {
        loop {
            let values = (record.id.to_string(), Json(&*record), record.expiry_date.unix_timestamp());
            match self.0.execute("INSERT INTO sessions VALUES (?, ?, ?)", values).await {
                // Another session has this id.
                Err(error) if error.is_unique_violation() => record.id = Id::default(),
                done => return done.map(drop).map_err(told),
            }
        }
    }

    async fn save(&self, record: &Record) -> session_store::Result<()> {
        let sql = "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET record = excluded.record, ends = excluded.ends";
        let values = (record.id.to_string(), Json(record), record.expiry_date.unix_timestamp());
        self.0.execute(sql, values).await.map(drop).map_err(told)
    }

    async fn load(&self, id: &Id) -> session_store::Result<Option<Record>> {
        let sql = "SELECT record FROM sessions WHERE id = ? AND ends > ?";
        let values = (id.to_string(), OffsetDateTime::now_utc().unix_timestamp());
        let found: Option<Json<Record>> = self.0.query_optional_value(sql, values).await.map_err(told)?;
        Ok(found.map(|Json(record)| record))
    }

    async fn delete(&self, id: &Id) -> session_store::Result<()> {
        self.0.execute("DELETE FROM sessions WHERE id = ?", (id.to_string(),)).await.map(drop).map_err(told)
    }
}

#[async_trait::async_trait]
impl ExpiredDeletion for Store {
    async fn delete_expired(&self) -> session_store::Result<()> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.0.execute("DELETE FROM sessions WHERE ends <= ?", (now,)).await.map(drop).map_err(told)
    }
}

fn session(user: &str, ends: OffsetDateTime) -> Record {
    Record { id: Id::default(), data: [("user".to_owned(), user.into())].into(), expiry_date: ends }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open("sessions.db").await?;
    let store = Store::open(db.clone()).await?;
    let later = OffsetDateTime::now_utc() + Duration::hours(1);

    let mut ada = session("Ada", later);
    store.create(&mut ada).await?;
    let mut grace = Record { id: ada.id, ..session("Grace", later) };
    store.create(&mut grace).await?;
    println!("another id: {}", grace.id != ada.id);

    ada.data.insert("cart".to_owned(), 3.into());
    store.save(&ada).await?;
    println!("kept: {}", store.load(&ada.id).await?.as_ref() == Some(&ada));

    store.delete(&grace.id).await?;
    store.create(&mut session("Alan", OffsetDateTime::now_utc() - Duration::seconds(1))).await?;
    store.delete_expired().await?;
    println!("left: {}", db.query_value::<i64>("SELECT count(*) FROM sessions", ()).await?);
    Ok(db.close().await?)
}
