//! The codes of the errors that are not SQLite's.
//!
//! Owns: the codes, with the name, the kind and the explanation of each; the page of codes is made from them. Pure. Invariant: an error
//! has either a result code of SQLite or one of these, because it cannot be made without. Leaves out: the text of a single error,
//! which names what it is about.

use super::ErrorKind;

/// Declares the codes, each with its name, its kind and what it means.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $code:ident $name:literal $kind:ident,)*) => {
        /// What went wrong, for an error that is not SQLite's. The names are stable, and the same in all languages; a new
        /// version may have more of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[doc = $doc])* $code,)*
        }

        impl ErrorCode {
            /// All codes, in the order of their kinds.
            pub const ALL: &'static [Self] = &[$(Self::$code,)*];

            /// Returns the code's name, such as `returns_rows`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// Returns the kind of the errors that have this code.
            #[must_use]
            pub fn kind(self) -> ErrorKind {
                match self {
                    $(Self::$code => ErrorKind::$kind,)*
                }
            }

            /// Returns what the code means, as Markdown.
            #[must_use]
            pub fn explanation(self) -> &'static str {
                match self {
                    $(Self::$code => concat!($($doc,)*).trim_ascii(),)*
                }
            }
        }
    };
}

codes! {
    /// The statement returns rows, and the call returns none. Nothing was executed.
    ReturnsRows "returns_rows" Misuse,
    /// The statement returns no rows, and the call reads some. Nothing was executed.
    ReturnsNoRows "returns_no_rows" Misuse,
    /// The text has no statement: it is empty, or a comment.
    NoStatement "no_statement" Misuse,
    /// The text has several statements, and the call takes one.
    SeveralStatements "several_statements" Misuse,
    /// A text of SQL or a name has a NUL byte.
    NulByte "nul_byte" Misuse,
    /// The number of values is not the number of the statement's parameters.
    ParameterCount "parameter_count" Misuse,
    /// A parameter of the statement has no value, two values, or a value for a name that it does not have.
    ParameterName "parameter_name" Misuse,
    /// A value cannot be stored: NaN, an integer beyond 64 bits, a text that is not Unicode, a type without a form in SQLite.
    InvalidValue "invalid_value" Misuse,
    /// An argument is not one that the call takes.
    InvalidArgument "invalid_argument" Misuse,
    /// The result has no such column, or another number of columns than it is read as.
    NoSuchColumn "no_such_column" Misuse,
    /// Two columns of the result have one name, and the form of the rows has one place for it.
    DuplicateColumn "duplicate_column" Misuse,
    /// BEGIN, COMMIT, ROLLBACK, SAVEPOINT or RELEASE as text, where it would have no effect on the next call.
    TransactionAsText "transaction_as_text" Misuse,
    /// The statement would change one connection of several: ATTACH, DETACH, a TEMP object, a PRAGMA of one connection.
    ConnectionState "connection_state" Misuse,
    /// There is no such PRAGMA. SQLite ignores it silently.
    NoSuchPragma "no_such_pragma" Misuse,
    /// `changes()`, `total_changes()` or `last_insert_rowid()` in SQL, where the last statement may be that of another call.
    LastStatement "last_statement" Misuse,
    /// A write in a snapshot, or a table of SQLite's. On a file that was opened to read an error has `SQLITE_READONLY`.
    ReadOnly "read_only" Misuse,
    /// The database was used inside its own transaction, and would wait for itself.
    NestedWrite "nested_write" Misuse,
    /// A nested transaction is open, and the call does not belong to it.
    NestedOpen "nested_open" Misuse,
    /// There is no savepoint of this name.
    NoSuchSavepoint "no_such_savepoint" Misuse,
    /// A function, a closure or a thread of the database called the database, and would wait for itself.
    CallsItself "calls_itself" Misuse,
    /// What the call belongs to is not open: a transaction, a snapshot, a stream, a connection, a blob. It has ended, or has not begun.
    Finished "finished" Misuse,
    /// What the call belongs to was lost to an earlier error, which the message has: SQLite rolled the transaction back, for
    /// instance. It has no effect.
    Lost "lost" Misuse,
    /// A statement ended the transaction that it ran in, by `ON CONFLICT ROLLBACK` or `RAISE(ROLLBACK, ...)`.
    EndedTransaction "ended_transaction" Misuse,
    /// A closure or a script left a transaction or a statement open, which was undone, or ended what it was given.
    LeftTransaction "left_transaction" Misuse,
    /// A closure took the connection away, or replaced what Flatwater needs of it.
    ChangedConnection "changed_connection" Misuse,
    /// Code of the program panicked: a closure, or a poll of the call.
    Panicked "panicked" Misuse,
    /// An option does not exist, has a value that it cannot have, or does not go with another.
    InvalidOption "invalid_option" Misuse,
    /// The path or the `file:` URI cannot be that of a database.
    InvalidPath "invalid_path" Misuse,
    /// The database is open in this process with other options.
    OtherOptions "other_options" Misuse,
    /// Another SQLite library of this process has the file open. When it closes the file, locks are lost, and with them
    /// acknowledged writes.
    SecondSqlite "second_sqlite" Misuse,
    /// The process was forked while a database was open.
    Forked "forked" Misuse,
    /// The key is empty, the program was built without encryption, or the database is not encrypted.
    NoEncryption "no_encryption" Misuse,
    /// The call is not possible here: on a server, in memory, on this file system, with this file.
    Unsupported "unsupported" Misuse,
    /// An rqlite cluster has no interactive transactions.
    NoTransactions "no_transactions" Misuse,
    /// The file that would be written exists, or its place cannot have it.
    InvalidTarget "invalid_target" Misuse,
    /// The statement cannot be a live query.
    NotLive "not_live" Misuse,
    /// The rows of a live query have no key that tells them apart, so there are no changes of single rows.
    NoRowKey "no_row_key" Misuse,
    /// The list of migrations, or the text of one, is wrong.
    InvalidMigration "invalid_migration" Misuse,
    /// The migration was changed after it was applied.
    MigrationChanged "migration_changed" Misuse,
    /// The database has a migration that the program does not have.
    MigrationUnknown "migration_unknown" Misuse,
    /// The name of a function or of a collation, or its number of arguments, cannot be registered.
    InvalidFunction "invalid_function" Misuse,
    /// No such function or collation was registered.
    NoSuchFunction "no_such_function" Misuse,
    /// The value of a blob was replaced since it was opened.
    BlobReplaced "blob_replaced" Misuse,
    /// A place outside of the blob.
    BlobBounds "blob_bounds" Misuse,
    /// A fault inside Flatwater. Please report it.
    Internal "internal" Misuse,

    /// A value of the result cannot be read as the type that was asked for.
    UnreadableValue "unreadable_value" Decode,
    /// A value of the result has no form in JSON: a text that is not Unicode, an infinite number.
    NoJsonForm "no_json_form" Decode,

    /// The query returned no row.
    NoRow "no_row" RowNotFound,
    /// The table has no row with this rowid, whose value was to be opened as a blob.
    NoBlob "no_blob" RowNotFound,

    /// The deadline of the call passed.
    Deadline "deadline" Timeout,
    /// The caller gave the call up, and it was undone.
    GivenUp "given_up" Cancelled,
    /// The database is closed.
    DatabaseClosed "database_closed" Closed,

    /// The transaction was not used for longer than `transaction_idle`, and was rolled back.
    TransactionIdle "transaction_idle" Expired,
    /// The snapshot was open for longer than `snapshot_age`.
    SnapshotAge "snapshot_age" Expired,
    /// No rows of the stream were fetched for longer than `stream_idle`.
    StreamIdle "stream_idle" Expired,
    /// The server ended the transaction: it was not used for too long, or the server was started anew.
    TransactionGone "transaction_gone" Expired,

    /// The read blocked a restart of the WAL for longer than `read_limit`.
    ReadLimit "read_limit" SnapshotTooOld,

    /// An earlier close of the file has not finished.
    Closing "closing" Busy,
    /// More databases are in use than `set_max_open` permits.
    TooManyOpen "too_many_open" Busy,
    /// Another checkpoint runs, or a reader keeps the WAL from being copied.
    CheckpointBusy "checkpoint_busy" Busy,

    /// The database cannot be opened here: the path cannot be made absolute, or the folder is missing.
    CannotOpen "cannot_open" Open,
    /// The file is on a file system that other machines write too.
    NetworkFileSystem "network_file_system" Open,
    /// The file cannot be switched to WAL.
    NoWal "no_wal" Open,
    /// The SQLite that the program is linked with is too old.
    OldSqlite "old_sqlite" Open,
    /// The server cannot be reached, does not permit it, or is none of this kind.
    Server "server" Open,

    /// The file is encrypted and has no key here, or is not encrypted and has one.
    WrongKey "wrong_key" Key,

    /// The file was replaced or removed while it was open. Writes are refused because they would be lost.
    FileReplaced "file_replaced" Io,
    /// A sync failed, so that the disk may have lost writes.
    SyncFailed "sync_failed" Io,
    /// The operating system failed: a thread, a file, a folder.
    System "system" Io,
    /// A read transaction could not be ended, or the schema could not be read. What it belonged to was undone.
    ReadFailed "read_failed" Io,
    /// The answer of the server was lost, or cannot be read.
    AnswerLost "answer_lost" Io,

    /// There is no room: on the disk for a backup, in memory for the bytes of a database.
    NoRoom "no_room" Full,

    /// Code of the program failed where SQLite lets nothing fail. What it was called for is undone.
    UserCode "user_code" Sql,
    /// The statement took more steps, or more memory, than an untrusted one may.
    StatementLimit "statement_limit" Sql,
    /// The server refuses the statement.
    RefusedByServer "refused_by_server" Sql,

    /// A row refers to one that does not exist, which was found by the check after a migration or a dump.
    ForeignKeyCheck "foreign_key_check" Constraint,

    /// It is unknown whether the server has committed.
    CommitUnknown "commit_unknown" CommitUnknown,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_differ_and_each_code_is_explained() {
        let names: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            let name = code.name();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert!(code.explanation().ends_with('.'), "{name}");
        }
    }
}
