//! The parts that both sides share: the schema, the seed, the statements and the types of their rows.
//!
//! Owns: the trait that a side implements, and the check of the contents of its file at the end. Leaves out: how a side
//! implements it.

use std::future::Future;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Any failure, as one sentence for the user.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub(crate) const USERS: i64 = 500;
pub(crate) const CONVERSATIONS: i64 = 100;
pub(crate) const MESSAGES: i64 = 10_000;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, joined_at INTEGER NOT NULL);
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY, title TEXT NOT NULL,
        last_message_at INTEGER NOT NULL, message_count INTEGER NOT NULL
    );
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY,
        conversation_id INTEGER NOT NULL REFERENCES conversations (id),
        user_id INTEGER NOT NULL REFERENCES users (id),
        sent_at INTEGER NOT NULL, body TEXT NOT NULL
    );
    CREATE INDEX messages_by_conversation ON messages (conversation_id);
    CREATE TABLE files (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);";

pub(crate) const SEED_USER: &str = "INSERT INTO users (id, name, email, joined_at) VALUES (?, ?, ?, ?)";
pub(crate) const SEED_CONVERSATION: &str =
    "INSERT INTO conversations (id, title, last_message_at, message_count) VALUES (?, ?, ?, ?)";

/// The index holds the messages of a conversation in the order of their ids, so this reads 20 of them and sorts none.
pub(crate) const LAST_MESSAGES: &str = "
    SELECT m.id, m.sent_at, m.body, u.id, u.name
    FROM messages m JOIN users u ON u.id = m.user_id
    WHERE m.conversation_id = ? ORDER BY m.id DESC LIMIT 20";
pub(crate) const USER: &str = "SELECT id, name, email, joined_at FROM users WHERE id = ?";
pub(crate) const NEW_MESSAGE: &str =
    "INSERT INTO messages (conversation_id, user_id, sent_at, body) VALUES (?, ?, ?, ?)";
pub(crate) const UPDATE: &str =
    "UPDATE conversations SET last_message_at = ?, message_count = message_count + 1 WHERE id = ?";
pub(crate) const CONTENTS: &str =
    "SELECT (SELECT count(*) FROM messages), (SELECT sum(message_count) FROM conversations)";
/// Counts the pairs of messages in one conversation that are by the same user: a report that takes long.
pub(crate) const PAIRS: &str = "
    SELECT count(*) FROM messages a JOIN messages b
    ON b.conversation_id = a.conversation_id AND b.user_id = a.user_id AND b.id > a.id";
pub(crate) const STORE: &str = "INSERT INTO files (id, bytes) VALUES (?, ?)";
/// The size of one file in bytes.
pub(crate) const FILE_BYTES: usize = 8192;
pub(crate) const STORED: &str = "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM files";

/// The id, time and text of a message, and the id and name of its author.
pub(crate) type Message = (i64, i64, String, i64, String);
/// The id, name, email and joining time of a user.
pub(crate) type User = (i64, String, String, i64);
/// The conversation, user, time and text of a message that is not stored yet.
pub(crate) type NewMessage = (i64, i64, i64, String);
/// The id, title, time of the last message and number of messages of a conversation.
pub(crate) type Conversation = (i64, String, i64, i64);

pub(crate) trait Side: Send + Sync + 'static {
    const NAME: &'static str;

    /// Returns the messages, newest first.
    fn last_messages(&self, conversation: i64) -> impl Future<Output = Result<Vec<Message>>> + Send;
    fn user(&self, id: i64) -> impl Future<Output = Result<Option<User>>> + Send;
    fn new_message(&self, message: NewMessage) -> impl Future<Output = Result<()>> + Send;
    fn update(&self, conversation: i64, at: i64) -> impl Future<Output = Result<()>> + Send;
    fn pairs(&self) -> impl Future<Output = Result<i64>> + Send;
    fn store(&self, id: i64, bytes: Vec<u8>) -> impl Future<Output = Result<()>> + Send;
    /// Returns the number of stored files and the sum of their bytes.
    fn stored(&self) -> impl Future<Output = Result<(i64, i64)>> + Send;
    fn contents(&self) -> impl Future<Output = Result<Contents>> + Send;
}

pub(crate) fn users() -> impl Iterator<Item = User> {
    (1..=USERS).map(|id| (id, format!("user {id}"), format!("user.{id}@example.org"), id))
}

pub(crate) fn conversations() -> impl Iterator<Item = Conversation> {
    (1..=CONVERSATIONS).map(|id| (id, format!("conversation {id}"), MESSAGES, MESSAGES / CONVERSATIONS))
}

/// Returns the messages of the seed: the same number for each conversation, with the authors in changing order.
pub(crate) fn messages() -> impl Iterator<Item = NewMessage> {
    let mut random = SmallRng::seed_from_u64(0);
    (1..=MESSAGES).map(move |at| (1 + at % CONVERSATIONS, user_id(&mut random), at, body(&mut random)))
}

pub(crate) fn user_id(random: &mut SmallRng) -> i64 {
    random.random_range(1..=USERS)
}

/// Returns a text of 10 to 200 bytes.
pub(crate) fn body(random: &mut SmallRng) -> String {
    const WORDS: &str = "so it goes on and on, day after day, until somebody says that this is enough for now, or asks \
                         when we shall meet, where that would be, and who is going to bring the cake this time, please";
    WORDS[..random.random_range(10..=WORDS.len())].to_owned()
}

/// The number of writes in the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writes {
    pub(crate) messages: u64,
    pub(crate) updates: u64,
}

/// The contents of a file at the end.
#[derive(Debug, Clone)]
pub(crate) struct Contents {
    pub(crate) messages: i64,
    /// The sum of `message_count` over all conversations.
    pub(crate) message_count: i64,
    pub(crate) integrity: String,
}

impl Contents {
    /// Returns an error unless the file holds the seed and each acknowledged write exactly once.
    pub(crate) fn check(&self, side: &str, acknowledged: Writes) -> Result<()> {
        let found = (self.messages - MESSAGES, self.message_count - MESSAGES);
        let expected = (acknowledged.messages.cast_signed(), acknowledged.updates.cast_signed());
        if found != expected {
            return Err(format!(
                "{side}: {} messages and {} updates were acknowledged, {} and {} found",
                expected.0, expected.1, found.0, found.1
            )
            .into());
        }
        if self.integrity != "ok" {
            return Err(format!("{side}: integrity_check says {}", self.integrity).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flatwater::rusqlite::Connection;

    use super::*;

    #[test]
    fn the_last_messages_come_out_of_the_index_without_a_sort() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {LAST_MESSAGES}")).unwrap();
        let plan: Vec<String> = explain.query_map([1], |row| row.get(3)).unwrap().map(|step| step.unwrap()).collect();
        assert!(plan[0].contains("messages_by_conversation"), "{plan:?}");
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    }

    #[test]
    fn the_seed_gives_every_conversation_the_same_number_of_messages() {
        for conversation in 1..=CONVERSATIONS {
            assert_eq!(messages().filter(|message| message.0 == conversation).count(), 100);
        }
        assert!(messages().all(|message| (1..=USERS).contains(&message.1) && (10..=200).contains(&message.3.len())));
        assert!(messages().eq(messages()), "twice the same");
    }

    #[test]
    fn one_write_missing_is_an_error_and_so_is_a_damaged_file() {
        let acknowledged = Writes { messages: 5, updates: 7 };
        let whole = Contents { messages: MESSAGES + 5, message_count: MESSAGES + 7, integrity: "ok".to_owned() };
        whole.check("x", acknowledged).unwrap();
        let lost = Contents { messages: MESSAGES + 4, ..whole.clone() };
        assert_eq!(
            lost.check("x", acknowledged).unwrap_err().to_string(),
            "x: 5 messages and 7 updates were acknowledged, 4 and 7 found"
        );
        let damaged = Contents { integrity: "row 3 missing from index i".to_owned(), ..whole };
        assert!(damaged.check("x", acknowledged).unwrap_err().to_string().contains("row 3 missing"));
    }
}
