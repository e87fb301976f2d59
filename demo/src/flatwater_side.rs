//! The chat service on Flatwater.
//!
//! Owns: the calls, which are plain awaits on one handle with the default options. Leaves out: the statements.

use std::path::Path;

use flatwater::Database;

use crate::side::{self, Contents, Message, NewMessage, Result, Side, User};

pub(crate) struct FlatwaterSide(Database);

impl FlatwaterSide {
    /// Creates a database that holds the seed.
    pub(crate) async fn open(path: &Path) -> Result<Self> {
        let db = Database::open(path).await?;
        db.execute_script(side::SCHEMA).await?;
        db.execute_many(side::SEED_USER, side::users()).await?;
        db.execute_many(side::SEED_CONVERSATION, side::conversations()).await?;
        db.execute_many(side::NEW_MESSAGE, side::messages()).await?;
        Ok(Self(db))
    }

    /// Returns how often the WAL was started over so far.
    pub(crate) fn resets(&self) -> u64 {
        self.0.stats().wal.resets
    }

    pub(crate) async fn close(&self) -> Result<()> {
        Ok(self.0.close().await?)
    }
}

impl Side for FlatwaterSide {
    const NAME: &'static str = "Flatwater";

    async fn last_messages(&self, conversation: i64) -> Result<Vec<Message>> {
        Ok(self.0.query_as(side::LAST_MESSAGES, (conversation,)).await?)
    }

    async fn user(&self, id: i64) -> Result<Option<User>> {
        let row = self.0.query_optional(side::USER, (id,)).await?;
        Ok(row.map(|row| row.read()).transpose()?)
    }

    async fn new_message(&self, message: NewMessage) -> Result<()> {
        self.0.execute(side::NEW_MESSAGE, message).await?;
        Ok(())
    }

    async fn update(&self, conversation: i64, at: i64) -> Result<()> {
        self.0.execute(side::UPDATE, (at, conversation)).await?;
        Ok(())
    }

    async fn pairs(&self) -> Result<i64> {
        Ok(self.0.query_optional_value(side::PAIRS, ()).await?.ok_or("the count has no row")?)
    }

    async fn store(&self, id: i64, bytes: Vec<u8>) -> Result<()> {
        self.0.execute(side::STORE, (id, bytes)).await?;
        Ok(())
    }

    async fn stored(&self) -> Result<(i64, i64)> {
        Ok(self.0.query_optional(side::STORED, ()).await?.ok_or("the counts have no row")?.read()?)
    }

    async fn contents(&self) -> Result<Contents> {
        let counts = self.0.query_optional(side::CONTENTS, ()).await?.ok_or("the counts have no row")?;
        let integrity = self.0.query_optional_value("PRAGMA integrity_check", ()).await?.unwrap_or_default();
        Ok(Contents { messages: counts.get(0)?, message_count: counts.get(1)?, integrity })
    }
}
