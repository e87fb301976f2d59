//! How each language spells what the hints of the engine name.
//!
//! Owns: a table for each language. Pure data. Invariant: a table has every name, and no sentence of the engine. Leaves out:
//! the sentences (`flatwater`), and the options by name (`options`).

use flatwater::bindings::Name;

/// The language of a program, and how it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// With `await`.
    Python,
    /// Without an event loop.
    BlockingPython,
    /// JavaScript in Node.
    Node,
}

impl Language {
    /// Returns the name as the language has it.
    #[must_use]
    pub fn spell(self, name: Name) -> &'static str {
        match self {
            Self::Python => python(name),
            Self::BlockingPython => blocking_python(name),
            Self::Node => node(name),
        }
    }
}

/// With `snake_case`, and the names of PEP 249.
fn python(name: Name) -> &'static str {
    match name {
        Name::ReadOnly => "`read_only`",
        Name::BusyTimeout => "`busy_timeout`",
        Name::Key => "the option `key`",
        Name::Rekey => "`db.rekey`",
        Name::Encryption => "install the package `flatwater-sqlcipher` in place of `flatwater`",
        Name::Export => "`db.export`",
        Name::OnOpen => "`on_open`",
        Name::OnConnect => "the option `functions`",
        Name::CreateFunctions => "`db.create_function` and `db.create_collation`",
        Name::Attach => "`tuning=` key `attach`",
        Name::ForeignKeys => "`foreign_keys`",
        Name::DoubleQuotedStrings => "`tuning=` key `double_quoted_strings`",
        Name::Durability => "`durability`",
        Name::TransactionIdle => "`tuning=` key `transaction_idle`",
        Name::AutoVacuum => "`tuning=` key `auto_vacuum`",
        Name::Checkpoint => "`checkpoint`",
        Name::ExtraReaders => "`tuning=` key `extra_readers`",
        Name::Immutable => "`tuning=` key `assume_immutable`",
        Name::Journal => "`journal`",
        Name::MemoryLimit => "`tuning=` key `memory_limit`",
        Name::MmapBytes => "`tuning=` key `mmap_bytes`",
        Name::NetworkFilesystem => "`tuning=` key `allow_network_filesystem`",
        Name::PageSize => "`tuning=` key `page_size`",
        Name::ReadLimit => "`tuning=` key `read_limit`",
        Name::ReaderCacheBytes => "`tuning=` key `reader_cache_bytes`",
        Name::ResultLimit => "`tuning=` key `result_limit`",
        Name::AllowSecondSqlite => "`tuning=` key `allow_second_sqlite`",
        Name::SnapshotAge => "`tuning=` key `snapshot_age`",
        Name::StepLimit => "`tuning=` key `step_limit`",
        Name::StreamIdle => "`tuning=` key `stream_idle`",
        Name::TempStore => "`tuning=` key `temp_store`",
        Name::WriterCacheBytes => "`tuning=` key `writer_cache_bytes`",
        Name::IgnoreMissing => "`ignore_missing`",
        Name::JsonArrays => "`arrays`",
        Name::SetMaxOpen => "`flatwater.process.set_max_open`",
        Name::Open => "`connect`",
        Name::Batch => "`batch`",
        Name::Execute => "`execute`",
        Name::ExecuteScript => "`executescript`",
        Name::Query => "`query`",
        Name::QueryMany => "`query_many`",
        Name::QueryOne => "`query_one`",
        Name::QueryOptional | Name::QueryOptionalAs => "`query_optional`",
        Name::QueryOptionalValue => "`query_optional_value`",
        Name::QueryValue => "`query_value`",
        Name::Stream => "`stream`",
        Name::Changes => "`changes`",
        Name::LastInsertRowid => "`last_insert_rowid`",
        Name::Null => "None",
        Name::OpenToCreate => "open it without `read_only` and with `create`",
        Name::BeginTransaction => "begin it with `async with db.transaction()`",
        Name::EndsTransaction => {
            "ends with its `async with` block: with a commit, or with a rollback if the block raises"
        }
        Name::NestTransaction => "nest with `async with tx.transaction()`, which is a savepoint",
        Name::InsideTransaction => "inside a transaction",
        Name::Vacuum => "`vacuum`",
        Name::VacuumsFile => "the `sqlite3` shell and VACUUM",
    }
}

/// With `camelCase`.
fn node(name: Name) -> &'static str {
    match name {
        Name::ReadOnly => "`readOnly`",
        Name::BusyTimeout => "`busyTimeout`",
        Name::Key => "the option `key`",
        Name::Rekey => "`db.rekey`",
        Name::Encryption => "install the package `@flatwater/sqlcipher` in place of `flatwater`",
        Name::Export => "`db.export`",
        Name::OnOpen => "`onOpen`",
        Name::OnConnect => "the option `functions` of `open`",
        Name::CreateFunctions => "an extension, with `loadExtension`",
        Name::Attach => "`tuning` key `attach`",
        Name::ForeignKeys => "`foreignKeys`",
        Name::DoubleQuotedStrings => "`tuning` key `doubleQuotedStrings`",
        Name::Durability => "`durability`",
        Name::TransactionIdle => "`tuning` key `transactionIdle`",
        Name::AutoVacuum => "`tuning` key `autoVacuum`",
        Name::Checkpoint => "`checkpoint`",
        Name::ExtraReaders => "`tuning` key `extraReaders`",
        Name::Immutable => "`tuning` key `assumeImmutable`",
        Name::Journal => "`journal`",
        Name::MemoryLimit => "`tuning` key `memoryLimit`",
        Name::MmapBytes => "`tuning` key `mmapBytes`",
        Name::NetworkFilesystem => "`tuning` key `allowNetworkFilesystem`",
        Name::PageSize => "`tuning` key `pageSize`",
        Name::ReadLimit => "`tuning` key `readLimit`",
        Name::ReaderCacheBytes => "`tuning` key `readerCacheBytes`",
        Name::ResultLimit => "`tuning` key `resultLimit`",
        Name::AllowSecondSqlite => "`tuning` key `allowSecondSqlite`",
        Name::SnapshotAge => "`tuning` key `snapshotAge`",
        Name::StepLimit => "`tuning` key `stepLimit`",
        Name::StreamIdle => "`tuning` key `streamIdle`",
        Name::TempStore => "`tuning` key `tempStore`",
        Name::WriterCacheBytes => "`tuning` key `writerCacheBytes`",
        Name::IgnoreMissing => "`ignoreMissing`",
        Name::JsonArrays => "`arrays`",
        Name::SetMaxOpen => "`process.setMaxOpen`",
        Name::Open => "`open`",
        Name::Batch => "`batch`",
        Name::Execute => "`execute`",
        Name::ExecuteScript => "`executeScript`",
        Name::Query => "`query`",
        Name::QueryMany => "`queryMany`",
        Name::QueryOne => "`queryOne`",
        Name::QueryOptional | Name::QueryOptionalAs => "`queryOptional`",
        Name::QueryOptionalValue => "`queryOptionalValue`",
        Name::QueryValue => "`queryValue`",
        Name::Stream => "`stream`",
        Name::Changes => "`changes`",
        Name::LastInsertRowid => "`lastInsertRowid`",
        Name::Null => "null",
        Name::OpenToCreate => "open it without `readOnly` and with `create`",
        Name::BeginTransaction => "begin it with `db.transaction(async tx => ...)`",
        Name::EndsTransaction => "ends with its function: with a commit, or with a rollback if that throws",
        Name::NestTransaction => "nest with `tx.transaction(async inner => ...)`, which is a savepoint",
        Name::InsideTransaction => "inside a transaction",
        Name::Vacuum => "`vacuum`",
        Name::VacuumsFile => "the `sqlite3` shell and VACUUM",
    }
}

fn blocking_python(name: Name) -> &'static str {
    match name {
        Name::BeginTransaction => "begin it with `with db.transaction()`",
        Name::EndsTransaction => "ends with its `with` block: with a commit, or with a rollback if the block raises",
        Name::NestTransaction => "nest with `with tx.transaction()`, which is a savepoint",
        name => python(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint;

    #[test]
    fn no_table_has_words_of_another_language() {
        for name in Name::ALL {
            for language in [Language::Python, Language::BlockingPython, Language::Node] {
                let spelled = language.spell(*name);
                for rust in ["::", "|tx|", "begin()", "commit()", "write_with", "with_connection", "rollback_to"] {
                    assert!(!spelled.contains(rust), "{name:?}: {spelled}");
                }
            }
            // Node has no name with an underscore but those of other languages and of SQL.
            let node = Language::Node.spell(*name);
            assert!(!node.contains('_') || *name == Name::OnConnect, "{name:?}: {node}");
            let blocking = Language::BlockingPython.spell(*name);
            assert!(!blocking.contains("async ") && !blocking.contains("await "), "{name:?}: {blocking}");
        }
    }

    #[test]
    fn options_are_named_as_they_are_set() {
        let rust = |name: &str| Name::ALL.iter().copied().find(|known| known.rust() == format!("`{name}`"));
        for (option, _) in crate::OPTIONS {
            let name = rust(&format!("Options::{option}"));
            assert!(name.is_none_or(|name| Language::Python.spell(name) == format!("`{option}`")), "{option}");
            let node = format!("`{}`", crate::camel(option));
            assert!(name.is_none_or(|name| Language::Node.spell(name) == node), "{option}");
        }
        for (option, _) in crate::TUNING {
            let name = rust(&format!("Tuning::{option}"));
            assert!(name.is_none_or(|name| Language::Python.spell(name) == format!("`tuning=` key `{option}`")));
            let node = format!("`tuning` key `{}`", crate::camel(option));
            assert!(name.is_none_or(|name| Language::Node.spell(name) == node), "{option}");
        }
    }

    #[test]
    fn hints_of_calls_name_nothing_of_rust() {
        let db = flatwater::Database::open(":memory:").wait().unwrap();
        for (sql, said) in [
            ("BEGIN", "begin it with `async with db.transaction()`"),
            ("COMMIT", "a transaction ends with its `async with` block"),
            ("SAVEPOINT a", "nest with `async with tx.transaction()`"),
            ("RELEASE a", "nest with"),
            ("ROLLBACK TO a", "nest with"),
            ("CREATE TEMP TABLE t (a)", "create it inside a transaction, where it lives until the end"),
            ("ATTACH 'a' AS b", "use `tuning=` key `attach`"),
            ("PRAGMA page_size = 512", "for a file that is created: `tuning=` key `page_size`"),
            ("SELECT 1", "use `query`, `query_one` or `query_value`"),
            ("SELECT 1; SELECT 2", "use `executescript`, or `batch`"),
        ] {
            let error = db.execute(sql, ()).wait().unwrap_err();
            let hint = hint(&error, Language::Python).unwrap().into_owned();
            assert!(hint.contains(said), "{sql}: {hint}");
        }
        let error = db.execute("BEGIN", ()).wait().unwrap_err();
        assert_eq!(hint(&error, Language::BlockingPython).unwrap(), "begin it with `with db.transaction()`");
        let error = db.execute("SELEC 1", ()).wait().unwrap_err();
        assert_eq!(hint(&error, Language::Python).as_deref(), error.hint());
    }
}
