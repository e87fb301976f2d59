//! What a text may do: one policy per situation, and the error message of a refusal.
//!
//! Owns: the rules about connection state. Transaction control, ATTACH and PRAGMAs that change a connection are the
//! task of other modules (`transaction`, the options). A TEMP object belongs to one connection, so only a transaction
//! may create one. SQLite calls a policy while it prepares a text, before the text has any effect. A PRAGMA that sets
//! what is in force already changes nothing, which no policy can know: the policies of texts ignore it, and whoever
//! prepares the text refuses it or answers it. Pure. Leaves out: the classes of PRAGMAs (`pragma`), what is in force.

use flatwater_sqlite::{AuthEvent, CAN_ENCRYPT, Verdict};
use rusqlite::ffi;

use super::pragma::{self, Pragma, is_of_new_files, is_of_sqlcipher, may_change_encryption};
use flatwater_base::error::hint::{Hint, hint};
use flatwater_base::error::{Error, ErrorCode};

/// The policy for Flatwater's own SQL, and for texts that were checked before.
pub fn trusted(_: &AuthEvent) -> Verdict {
    Verdict::Allow
}

/// The policy where no text may be prepared.
pub fn nothing(_: &AuthEvent) -> Verdict {
    Verdict::Deny
}

/// The policy for a text given to `execute`, `query` and the like.
pub fn statement(event: &AuthEvent) -> Verdict {
    if sets(event) { Verdict::Ignore } else { verdict(is_refused(event) || is_temp(event)) }
}

/// The policy for a text inside a transaction, whose TEMP objects end with it.
pub fn transaction(event: &AuthEvent) -> Verdict {
    match ends_with_transaction(event) {
        true => Verdict::Allow,
        false if sets(event) => Verdict::Ignore,
        false => verdict(is_refused(event)),
    }
}

/// The policy for the caller's SQL for new connections: it may change the connection, except for what an option sets.
pub fn on_open(event: &AuthEvent) -> Verdict {
    let is_ours = || pragma::is_ours(event.first.as_deref().unwrap_or_default());
    match event.action == ffi::SQLITE_PRAGMA && matches!(pragma_of(event), Pragma::ConnectionState(_)) {
        true if !is_ours() => Verdict::Allow,
        _ => statement(event),
    }
}

/// The policy for a user closure on a connection that was just opened. No code judges the statements that it prepares, so
/// nothing is ignored.
pub fn on_connect(event: &AuthEvent) -> Verdict {
    match on_open(event) {
        Verdict::Ignore => Verdict::Deny,
        verdict => verdict,
    }
}

/// The policy for a user closure on a reader. No code judges the statements that it prepares, so nothing is ignored.
pub fn read_closure(event: &AuthEvent) -> Verdict {
    verdict(is_refused(event) || is_temp(event))
}

/// The policy for a user closure on the writer. It runs inside a Flatwater transaction, whose end also ends the
/// closure's savepoints.
pub fn write_closure(event: &AuthEvent) -> Verdict {
    verdict(is_refused(event) && event.action != ffi::SQLITE_SAVEPOINT && !ends_with_transaction(event))
}

/// Returns true for the PRAGMA that holds until the next COMMIT or ROLLBACK
/// (<https://sqlite.org/pragma.html#pragma_defer_foreign_keys>).
fn ends_with_transaction(event: &AuthEvent) -> bool {
    pragma_with_argument(event).is_some_and(|(name, _)| name.eq_ignore_ascii_case("defer_foreign_keys"))
}

/// The policy for a statement of a dump, which is a transaction of Flatwater's as a whole. What it says of transactions is
/// ignored. The schema may be written, as a dump does for virtual tables.
pub fn dump(event: &AuthEvent) -> Verdict {
    let writes_schema =
        pragma_with_argument(event).is_some_and(|(name, _)| name.eq_ignore_ascii_case("writable_schema"));
    match event.action {
        ffi::SQLITE_TRANSACTION => Verdict::Ignore,
        _ if writes_schema || ends_with_transaction(event) => Verdict::Allow,
        _ => statement(event),
    }
}

/// The policy for a closure that has the exclusive connection of the writer, which is replaced after it, and for a
/// connection of a caller's own. Readers and the checkpointer rely on the file's journal mode and on how it is encrypted, and
/// no other connection could use a file under an exclusive lock.
pub fn exclusive_connection(event: &AuthEvent) -> Verdict {
    let name = event.first.as_deref().unwrap_or_default();
    let is_pragma = event.action == ffi::SQLITE_PRAGMA;
    verdict(match pragma_with_argument(event) {
        _ if is_pragma && may_change_encryption(name, event.second.as_deref(), CAN_ENCRYPT) => true,
        Some((name, mode)) if name.eq_ignore_ascii_case("journal_mode") => !mode.eq_ignore_ascii_case("wal"),
        Some((name, mode)) if name.eq_ignore_ascii_case("locking_mode") => !mode.eq_ignore_ascii_case("normal"),
        _ => false,
    })
}

/// The policy for a migration, which runs in a transaction of its own on the exclusive connection.
pub fn migration(event: &AuthEvent) -> Verdict {
    match event.action {
        ffi::SQLITE_TRANSACTION => Verdict::Deny,
        _ if pragma_with_argument(event).is_some_and(|(name, _)| is_of_new_files(name)) => Verdict::Ignore,
        _ => exclusive_connection(event),
    }
}

/// The same for a file that keeps a journal mode other than WAL.
pub fn exclusive_keeping_journal(event: &AuthEvent) -> Verdict {
    let sets_mode = pragma_with_argument(event).is_some_and(|(name, _)| name.eq_ignore_ascii_case("journal_mode"));
    if sets_mode { Verdict::Deny } else { exclusive_connection(event) }
}

/// Returns true for a PRAGMA that sets a value of the connection, which may be the one in force.
pub fn sets(event: &AuthEvent) -> bool {
    pragma_with_argument(event).is_some() && matches!(pragma_of(event), Pragma::ConnectionState(_))
}

fn pragma_with_argument(event: &AuthEvent) -> Option<(&str, &str)> {
    let name = event.first.as_deref().filter(|_| event.action == ffi::SQLITE_PRAGMA)?;
    Some((name, event.second.as_deref()?))
}

fn verdict(refused: bool) -> Verdict {
    if refused { Verdict::Deny } else { Verdict::Allow }
}

fn is_refused(event: &AuthEvent) -> bool {
    match event.action {
        ffi::SQLITE_TRANSACTION | ffi::SQLITE_SAVEPOINT | ffi::SQLITE_ATTACH | ffi::SQLITE_DETACH => true,
        ffi::SQLITE_PRAGMA => matches!(pragma_of(event), Pragma::ConnectionState(_) | Pragma::Unknown),
        _ => false,
    }
}

fn is_temp(event: &AuthEvent) -> bool {
    match event.action {
        ffi::SQLITE_CREATE_TEMP_INDEX
        | ffi::SQLITE_CREATE_TEMP_TABLE
        | ffi::SQLITE_CREATE_TEMP_TRIGGER
        | ffi::SQLITE_CREATE_TEMP_VIEW => true,
        ffi::SQLITE_CREATE_VTABLE => event.database.as_deref() == Some("temp"),
        _ => false,
    }
}

/// Returns the class of the PRAGMA of a `SQLITE_PRAGMA` event.
pub fn pragma_of(event: &AuthEvent) -> Pragma {
    pragma::class(event.first.as_deref().unwrap_or_default(), event.second.is_some())
}

/// Returns the name of the PRAGMA if the event is of one that does not exist.
pub fn unknown_pragma(event: &AuthEvent) -> Option<&str> {
    let is_unknown = event.action == ffi::SQLITE_PRAGMA && pragma_of(event) == Pragma::Unknown;
    event.first.as_deref().filter(|_| is_unknown)
}

/// Returns the error for a text that was denied because of `event`. `nearest` is the hint for an unknown PRAGMA, if there
/// is one with a similar name.
pub fn refusal(event: &AuthEvent, nearest: Option<String>) -> Error {
    let first = event.first.as_deref().unwrap_or_default();
    match event.action {
        ffi::SQLITE_TRANSACTION if first.eq_ignore_ascii_case("BEGIN") => {
            Error::new(ErrorCode::TransactionAsText, "BEGIN as text would have no effect on the next call, which may run on another connection")
                .with_hint(hint![BeginTransaction])
        }
        ffi::SQLITE_TRANSACTION => Error::new(ErrorCode::TransactionAsText, format!("{first} as text has no transaction to end"))
            .with_hint(hint!["a single write is committed when its call returns; a transaction " EndsTransaction]),
        ffi::SQLITE_SAVEPOINT => Error::new(ErrorCode::TransactionAsText, "SAVEPOINT, RELEASE and ROLLBACK TO as text are not accepted")
            .with_hint(hint![NestTransaction]),
        ffi::SQLITE_ATTACH | ffi::SQLITE_DETACH => {
            Error::new(ErrorCode::ConnectionState, "ATTACH and DETACH would change one connection of several").with_hint(hint!["use " Attach])
        }
        ffi::SQLITE_PRAGMA => match pragma_of(event) {
            Pragma::ConnectionState(hint) if is_of_new_files(first) => {
                Error::new(ErrorCode::ConnectionState, format!("PRAGMA {first} has no effect on a file that exists")).with_hint(hint)
            }
            Pragma::ConnectionState(_) if CAN_ENCRYPT && first.eq_ignore_ascii_case("temp_store") => {
                Error::new(ErrorCode::ConnectionState, "temporary files are not encrypted, and where they are is the same for all connections")
                    .with_hint(hint!["set it in the options: " TempStore])
            }
            Pragma::ConnectionState(hint) => {
                Error::new(ErrorCode::ConnectionState, format!("PRAGMA {first} would change one connection of several")).with_hint(hint)
            }
            _ if is_of_sqlcipher(first) => Error::new(ErrorCode::ConnectionState, format!(
                "PRAGMA {first} of SQLCipher is not accepted: it may change how this file is encrypted, or all of the process"
            ))
            .with_hint("a file has the default settings of SQLCipher 4"),
            _ => Error::new(ErrorCode::NoSuchPragma, format!("there is no PRAGMA {first}"))
                .with_hint(nearest.map_or_else(|| "SQLite ignores unknown PRAGMAs silently".into(), Hint::from)),
        },
        _ => temp_refusal(),
    }
}

/// Returns the error for a text that creates a TEMP object where none is allowed.
pub fn temp_refusal() -> Error {
    Error::new(ErrorCode::ConnectionState, "a TEMP object exists on one connection of several")
        .with_hint(hint!["create it " InsideTransaction ", where it lives until the end"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(action: i32, first: &str, second: Option<&str>) -> AuthEvent {
        AuthEvent {
            action,
            first: Some(first.into()),
            second: second.map(Into::into),
            database: Some("main".into()),
            accessor: None,
        }
    }

    #[test]
    fn transaction_control_attach_and_connection_state_are_allowed_nowhere() {
        let sets = event(ffi::SQLITE_PRAGMA, "foreign_keys", Some("off"));
        for refused in [
            event(ffi::SQLITE_TRANSACTION, "BEGIN", None),
            event(ffi::SQLITE_ATTACH, "x.db", None),
            event(ffi::SQLITE_PRAGMA, "nonsense", None),
            event(ffi::SQLITE_PRAGMA, "shrink_memory", None),
            sets.clone(),
        ] {
            let of_texts = if refused == sets { Verdict::Ignore } else { Verdict::Deny };
            assert_eq!([statement, transaction].map(|policy| policy(&refused)), [of_texts; 2], "{refused:?}");
            assert_eq!([read_closure, write_closure].map(|policy| policy(&refused)), [Verdict::Deny; 2], "{refused:?}");
            assert_eq!(trusted(&refused), Verdict::Allow);
            assert!(refusal(&refused, None).hint().is_some());
        }
    }

    #[test]
    fn sql_for_new_connections_may_set_what_no_option_sets() {
        let pragma = |name| event(ffi::SQLITE_PRAGMA, name, Some("1"));
        for allowed in ["case_sensitive_like", "recursive_triggers", "secure_delete", "Analysis_Limit"] {
            assert_eq!(on_open(&pragma(allowed)), Verdict::Allow, "{allowed}");
        }
        for ours in ["foreign_keys", "Journal_Mode", "wal_autocheckpoint", "locking_mode"] {
            assert_eq!(on_open(&pragma(ours)), Verdict::Ignore, "{ours}");
        }
        assert_eq!(on_open(&pragma("nonsense")), Verdict::Deny);
        assert_eq!(on_open(&event(ffi::SQLITE_CREATE_TEMP_TABLE, "t", None)), Verdict::Deny);
        assert_eq!(on_open(&event(ffi::SQLITE_TRANSACTION, "BEGIN", None)), Verdict::Deny);
    }

    #[test]
    fn the_exclusive_connection_may_do_all_but_leave_wal_mode_or_lock_the_file_for_itself() {
        let pragma = |name, mode| event(ffi::SQLITE_PRAGMA, name, mode);
        for allowed in [
            event(ffi::SQLITE_TRANSACTION, "BEGIN", None),
            event(ffi::SQLITE_ATTACH, "x.db", None),
            pragma("foreign_keys", Some("off")),
            pragma("journal_mode", Some("Wal")),
            pragma("journal_mode", None),
            pragma("locking_mode", Some("normal")),
        ] {
            assert_eq!(exclusive_connection(&allowed), Verdict::Allow, "{allowed:?}");
        }
        for refused in [
            pragma("Journal_Mode", Some("delete")),
            pragma("locking_mode", Some("EXCLUSIVE")),
            pragma("ReKey", Some("secret")),
            pragma("cipher_migrate", None),
        ] {
            assert_eq!(
                [exclusive_connection(&refused), exclusive_keeping_journal(&refused)],
                [Verdict::Deny; 2],
                "{refused:?}"
            );
        }
        assert_eq!(exclusive_keeping_journal(&pragma("journal_mode", Some("wal"))), Verdict::Deny);
    }

    #[test]
    fn temp_objects_are_for_transactions_and_savepoints_for_write_closures() {
        let temp = event(ffi::SQLITE_CREATE_TEMP_TABLE, "t", None);
        assert_eq!(
            [statement(&temp), transaction(&temp), write_closure(&temp)],
            [Verdict::Deny, Verdict::Allow, Verdict::Allow]
        );
        let savepoint = event(ffi::SQLITE_SAVEPOINT, "BEGIN", Some("a"));
        assert_eq!([transaction(&savepoint), write_closure(&savepoint)], [Verdict::Deny, Verdict::Allow]);
        let deferred = event(ffi::SQLITE_PRAGMA, "Defer_Foreign_Keys", Some("on"));
        assert_eq!(
            [statement(&deferred), read_closure(&deferred), transaction(&deferred), write_closure(&deferred)],
            [Verdict::Ignore, Verdict::Deny, Verdict::Allow, Verdict::Allow]
        );
    }
}
