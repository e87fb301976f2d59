//! What an error says to do, and the names of the API in it.
//!
//! Owns: the hint, the sentences that name something of the API, and these names with how Rust spells them. Pure, on any thread.
//! Invariants: a sentence is a constant, and joined where an error needs it; a hint names nothing of the API but by `Name`, so that
//! another language needs a table of them and no more. Leaves out: which error has which hint, and the tables of other languages
//! (`flatwater-bridge`).

use std::borrow::Cow;

use super::Error;

/// What an error says to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    rust: Cow<'static, str>,
    /// Of one that names something of the API.
    parts: &'static Sentence,
}

/// A hint that may name something of the API. Made by `hint!`.
pub type Sentence = [Part];

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// A text.
    Said(&'static str),
    /// A name of the API.
    Name(Name),
}

/// Makes a sentence of texts and names: `hint!["set " BusyTimeout " higher"]`.
#[macro_export]
#[doc(hidden)]
macro_rules! hint {
    ($($part:tt)*) => {{
        const SENTENCE: &$crate::error::hint::Sentence = &[$($crate::error::hint::hint_part!($part)),*];
        SENTENCE
    }};
}

#[macro_export]
#[doc(hidden)]
macro_rules! hint_part {
    ($said:literal) => {
        $crate::error::hint::Part::Said($said)
    };
    ($name:ident) => {
        $crate::error::hint::Part::Name($crate::error::hint::Name::$name)
    };
}

pub use crate::{hint, hint_part};

fn joined(parts: &Sentence, spell: impl Fn(Name) -> &'static str) -> String {
    let part = |part: &Part| match part {
        Part::Said(said) => *said,
        Part::Name(name) => spell(*name),
    };
    parts.iter().map(part).collect()
}

impl Hint {
    /// Returns the hint as it is for Rust.
    pub fn rust(&self) -> &str {
        &self.rust
    }

    /// Returns the hint with the names as `spell` has them.
    pub fn spelled(&self, spell: impl Fn(Name) -> &'static str) -> Cow<'_, str> {
        if self.parts.is_empty() { Cow::Borrowed(&self.rust) } else { joined(self.parts, spell).into() }
    }
}

impl From<&'static Sentence> for Hint {
    fn from(parts: &'static Sentence) -> Self {
        Self { rust: joined(parts, Name::rust).into(), parts }
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self { rust: text.into(), parts: &[] }
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self { rust: text.into(), parts: &[] }
    }
}

/// Declares the names, each with its spelling in Rust.
macro_rules! names {
    ($($name:ident = $rust:literal,)*) => {
        /// What a hint names of the API. A language may need a clause where Rust has a name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Name {
            $(#[doc = $rust] $name,)*
        }

        impl Name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns how Rust spells it.
            #[must_use]
            pub const fn rust(self) -> &'static str {
                match self {
                    $(Self::$name => $rust,)*
                }
            }
        }
    };
}

names! {
    ReadOnly = "`Options::read_only`",
    BusyTimeout = "`Options::busy_timeout`",
    Key = "`Options::key`",
    Rekey = "`db.rekey`",
    Encryption = "build it with the cargo feature `sqlcipher`",
    Export = "`db.export`",
    OnOpen = "`Options::on_open`",
    OnConnect = "`Options::on_connect`",
    CreateFunctions = "`db.functions()`",
    Attach = "`Tuning::attach`",
    ForeignKeys = "`Options::foreign_keys`",
    DoubleQuotedStrings = "`Tuning::double_quoted_strings`",
    Durability = "`Options::durability`",
    TransactionIdle = "`Tuning::transaction_idle`",
    AutoVacuum = "`Tuning::auto_vacuum`",
    Checkpoint = "`Options::checkpoint`",
    ExtraReaders = "`Tuning::extra_readers`",
    Immutable = "`Tuning::assume_immutable`",
    Journal = "`Options::journal`",
    MemoryLimit = "`Tuning::memory_limit`",
    MmapBytes = "`Tuning::mmap_bytes`",
    NetworkFilesystem = "`Tuning::allow_network_filesystem`",
    PageSize = "`Tuning::page_size`",
    ReadLimit = "`Tuning::read_limit`",
    ReaderCacheBytes = "`Tuning::reader_cache_bytes`",
    ResultLimit = "`Tuning::result_limit`",
    AllowSecondSqlite = "`Tuning::allow_second_sqlite`",
    SnapshotAge = "`Tuning::snapshot_age`",
    StepLimit = "`Tuning::step_limit`",
    StreamIdle = "`Tuning::stream_idle`",
    TempStore = "`Tuning::temp_store`",
    WriterCacheBytes = "`Tuning::writer_cache_bytes`",
    IgnoreMissing = "`Migrations::ignore_missing`",
    JsonArrays = "`query_json(..).arrays()`",
    SetMaxOpen = "`process::set_max_open`",
    Open = "`open`",
    Batch = "`batch`",
    Execute = "`execute`",
    ExecuteScript = "`execute_script`",
    Query = "`query`",
    QueryMany = "`query_many`",
    QueryOne = "`query_one`",
    QueryOptional = "`query_optional`",
    QueryOptionalAs = "`query_optional_as`",
    QueryOptionalValue = "`query_optional_value`",
    QueryValue = "`query_value`",
    Stream = "`stream`",
    Changes = "`changes`",
    LastInsertRowid = "`last_insert_rowid`",
    Null = "None",
    OpenToCreate = "open it without `read_only` and with `create`",
    BeginTransaction = "use `transaction(async |tx| ...)`, or `begin()`",
    EndsTransaction = "ends with `tx.commit()` or `tx.rollback()`",
    NestTransaction = "nest: `tx.transaction(async |tx| ...)` or `tx.begin()`; by name: `tx.savepoint(name)`",
    InsideTransaction = "inside a transaction or `write_with`",
    Vacuum = "`vacuum`",
    VacuumsFile = "`with_connection` and VACUUM",
}

/// The same error with this hint in the place of another one.
pub fn with_other_hint(mut error: Error, hint: impl Into<Hint>) -> Error {
    error.0.hint = Some(hint.into());
    error
}

/// Returns an error's hint with the names as `spell` has them.
pub fn hint_spelled(error: &Error, spell: impl Fn(Name) -> &'static str) -> Option<Cow<'_, str>> {
    error.0.hint.as_ref().map(|hint| hint.spelled(spell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_its_names_in_every_language() {
        let hint = Hint::from(hint!["set " BusyTimeout " higher, or use " ExecuteScript]);
        assert_eq!(hint.rust(), "set `Options::busy_timeout` higher, or use `execute_script`");
        let other = hint.spelled(|name| if name == Name::BusyTimeout { "busyTimeout" } else { "executeScript" });
        assert_eq!(other, "set busyTimeout higher, or use executeScript");
        assert_eq!(Hint::from("no such table").spelled(|_| "?"), "no such table");
    }

    #[test]
    fn rust_spells_the_parts_of_a_sentence_as_its_text_has_them() {
        let sentence = hint!["take " Changes " of the result of " Execute ", or RETURNING"];
        let hint = Hint::from(sentence);
        assert_eq!(hint.rust(), "take `changes` of the result of `execute`, or RETURNING");
        assert_eq!(hint.spelled(Name::rust), hint.rust());
    }
}
