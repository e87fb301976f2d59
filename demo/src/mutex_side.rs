//! The chat service as it is usually written today: one rusqlite connection behind a Mutex, each call in
//! `spawn_blocking`, with cached statements. On request it runs its calls on the caller's own thread instead.
//!
//! Owns: the calls and the settings of the connection, which are those that Flatwater gives its writer. Leaves out: the
//! statements.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flatwater::rusqlite::{self, Connection, OptionalExtension};

use crate::side::{self, Contents, Message, NewMessage, Result, Side, User};

pub(crate) struct MutexSide {
    connection: Arc<Mutex<Connection>>,
    /// Calls run on the caller's thread.
    on_the_callers_thread: bool,
}

impl MutexSide {
    /// Creates a database that holds the seed.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let connection = tokio::task::spawn_blocking(move || seeded(&path)).await??;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), on_the_callers_thread: false })
    }

    /// Returns the same connection, used without `spawn_blocking`.
    pub(crate) fn on_the_callers_thread(&self) -> Self {
        Self { connection: self.connection.clone(), on_the_callers_thread: true }
    }

    async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let connection = self.connection.clone();
        let locked = move || work(&connection.lock().unwrap_or_else(PoisonError::into_inner));
        if self.on_the_callers_thread {
            return Ok(locked()?);
        }
        Ok(tokio::task::spawn_blocking(locked).await??)
    }
}

fn seeded(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = 1;
         PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;",
    )?;
    connection.execute_batch(side::SCHEMA)?;
    let seed = connection.transaction()?;
    for user in side::users() {
        seed.prepare_cached(side::SEED_USER)?.execute(user)?;
    }
    for conversation in side::conversations() {
        seed.prepare_cached(side::SEED_CONVERSATION)?.execute(conversation)?;
    }
    for message in side::messages() {
        seed.prepare_cached(side::NEW_MESSAGE)?.execute(message)?;
    }
    seed.commit()?;
    Ok(connection)
}

impl Side for MutexSide {
    const NAME: &'static str = "one Mutex";

    async fn last_messages(&self, conversation: i64) -> Result<Vec<Message>> {
        self.run(move |connection| {
            let mut select = connection.prepare_cached(side::LAST_MESSAGES)?;
            let rows = select.query_map([conversation], |row| row.try_into())?;
            rows.collect()
        })
        .await
    }

    async fn user(&self, id: i64) -> Result<Option<User>> {
        self.run(move |connection| {
            let mut select = connection.prepare_cached(side::USER)?;
            select.query_row([id], |row| row.try_into()).optional()
        })
        .await
    }

    async fn new_message(&self, message: NewMessage) -> Result<()> {
        self.run(move |connection| connection.prepare_cached(side::NEW_MESSAGE)?.execute(message).map(drop)).await
    }

    async fn update(&self, conversation: i64, at: i64) -> Result<()> {
        self.run(move |connection| connection.prepare_cached(side::UPDATE)?.execute((at, conversation)).map(drop)).await
    }

    async fn pairs(&self) -> Result<i64> {
        self.run(|connection| connection.prepare_cached(side::PAIRS)?.query_row([], |row| row.get(0))).await
    }

    async fn store(&self, id: i64, bytes: Vec<u8>) -> Result<()> {
        self.run(move |connection| connection.prepare_cached(side::STORE)?.execute((id, bytes)).map(drop)).await
    }

    async fn stored(&self) -> Result<(i64, i64)> {
        self.run(|connection| connection.query_row(side::STORED, [], |row| row.try_into())).await
    }

    async fn contents(&self) -> Result<Contents> {
        self.run(|connection| {
            let (messages, message_count) = connection.query_row(side::CONTENTS, [], |row| row.try_into())?;
            let integrity = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            Ok(Contents { messages, message_count, integrity })
        })
        .await
    }
}
