//! Classifies PRAGMAs by what they change. Pure.
//!
//! Owns: the table of known PRAGMAs (<https://sqlite.org/pragma.html>). A PRAGMA either only returns a value, which any
//! connection can do; or changes the state of the database, which the writer does; or changes the state of one
//! connection. Only the options may do the last, because a caller does not know which connection serves it. Leaves out:
//! refusing a PRAGMA (`policy`).

use flatwater_sqlite::CAN_ENCRYPT;

use flatwater_base::error::hint::{Sentence, hint};
use flatwater_base::error::location::KEY_PRAGMAS;

/// What a PRAGMA concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pragma {
    /// It only answers.
    Answer,
    /// It changes the database.
    DatabaseState,
    /// Contains a hint on the supported alternative.
    ConnectionState(&'static Sentence),
    /// There is no such PRAGMA.
    Unknown,
}

const KEY: &Sentence = hint!["set it in the options: " Key ", and change it with " Rekey];
const CHECKPOINTS: &Sentence = hint!["Flatwater runs the checkpoints; see " Checkpoint];
const ON_OPEN: &Sentence = hint!["set it in the options, for every connection: " OnOpen];

/// What a PRAGMA is, however it is asked. One that sets a value has a hint on the supported alternative.
#[derive(Clone, Copy)]
enum Kind {
    Answers,
    /// It answers with objects of the schema.
    Lists,
    /// It changes the database.
    Changes,
    /// With an argument it changes the database.
    Keeps,
    /// It sets a value.
    Value(&'static Sentence),
    /// The value is on or off, so that any number but 0 is on.
    Switch(&'static Sentence),
    /// It returns a row also when it sets its value (`PragFlg_NoColumns1`).
    Answered(&'static Sentence),
    /// A file has the value from its first page on, so that it has no effect on a file with pages.
    OfNewFiles(&'static Sentence),
    /// It does something to one connection, and has no value.
    Refused(&'static Sentence),
}

use Kind::{Answered, Answers, Changes, Keeps, Lists, OfNewFiles, Refused, Switch, Value};

/// All that are known, by what they are.
const KNOWN: &[(Kind, &str)] = &[
    (
        Lists,
        "foreign_key_check foreign_key_list index_info index_list index_xinfo integrity_check quick_check \
         table_info table_list table_xinfo",
    ),
    (
        Answers,
        "collation_list compile_options data_version database_list freelist_count function_list module_list \
         page_count pragma_list",
    ),
    (Changes, "incremental_vacuum optimize wal_checkpoint"),
    (Keeps, "application_id schema_version user_version"),
    (Refused(hint!["Flatwater opens and closes its connections as needed"]), "shrink_memory"),
    (
        Refused(hint!["write the comparison into the SQL, for example with GLOB, or set it in the options: " OnOpen]),
        "case_sensitive_like",
    ),
    (Answered(ON_OPEN), "analysis_limit hard_heap_limit max_page_count secure_delete soft_heap_limit threads"),
    (
        OfNewFiles(
            hint!["set it in the options, for a file that is created: " AutoVacuum "; to change an existing file, use " VacuumsFile],
        ),
        "auto_vacuum",
    ),
    (
        Switch(ON_OPEN),
        "automatic_index cell_size_check checkpoint_fullfsync count_changes empty_result_callbacks \
         full_column_names fullfsync ignore_check_constraints legacy_alter_table read_uncommitted \
         recursive_triggers reverse_unordered_selects short_column_names trusted_schema writable_schema",
    ),
    (Answered(hint!["set it in the options: " BusyTimeout]), "busy_timeout"),
    (Value(hint!["set it in the options: " WriterCacheBytes " and " ReaderCacheBytes]), "cache_size"),
    (
        Value(hint!["Flatwater writes pages of a transaction to the WAL when it has changed 64 MiB of them"]),
        "cache_spill",
    ),
    (Value(ON_OPEN), "data_store_directory default_cache_size legacy_file_format temp_store_directory"),
    (
        Switch(hint!["use it inside of a transaction, or declare the foreign key DEFERRABLE INITIALLY DEFERRED"]),
        "defer_foreign_keys",
    ),
    (OfNewFiles(hint!["a file keeps the encoding that it was created with"]), "encoding"),
    (Switch(hint!["set it in the options: " ForeignKeys]), "foreign_keys"),
    (Answered(hint!["Flatwater keeps the database in WAL mode; see " Journal]), "journal_mode"),
    (Answered(CHECKPOINTS), "journal_size_limit wal_autocheckpoint"),
    (Answered(hint!["a database is shared by several connections"]), "locking_mode"),
    (Answered(hint!["set it in the options: " MmapBytes]), "mmap_size"),
    (OfNewFiles(hint!["set it in the options, for a file that is created: " PageSize]), "page_size"),
    (Switch(hint!["set it in the options: " ReadOnly]), "query_only"),
    (Value(hint!["set it in the options: " Durability]), "synchronous"),
    (Value(hint!["set it in the options: " TempStore]), "temp_store"),
];

fn known(name: &str) -> Option<Kind> {
    let has_it = |names: &str| names.split_ascii_whitespace().any(|known| known.eq_ignore_ascii_case(name));
    KNOWN.iter().find(|(_, names)| has_it(names)).map(|(kind, _)| *kind)
}

fn is_key(name: &str) -> bool {
    KEY_PRAGMAS.iter().any(|key| key.eq_ignore_ascii_case(name))
}

/// Returns the class of `PRAGMA name` or, with an argument, of `PRAGMA name = argument`.
pub fn class(name: &str, has_argument: bool) -> Pragma {
    match known(name) {
        Some(Changes) => Pragma::DatabaseState,
        Some(Keeps) if has_argument => Pragma::DatabaseState,
        Some(Value(hint) | Switch(hint) | Answered(hint) | OfNewFiles(hint)) if has_argument => {
            Pragma::ConnectionState(hint)
        }
        Some(Refused(hint)) => Pragma::ConnectionState(hint),
        Some(_) => Pragma::Answer,
        None if is_key(name) => Pragma::ConnectionState(KEY),
        None if CAN_ENCRYPT && is_answer_of_sqlcipher(name, has_argument) => Pragma::Answer,
        None => Pragma::Unknown,
    }
}

fn is_answer_of_sqlcipher(name: &str, has_argument: bool) -> bool {
    // The integrity check asks the last, with another argument each time.
    let names: &[&str] = if has_argument {
        &["cipher_integrity_check"]
    } else {
        &["cipher_version", "cipher_provider", "cipher_provider_version"]
    };
    names.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Returns true if a file has it from its first page on, so that the PRAGMA has no effect on a file with pages.
pub fn is_of_new_files(name: &str) -> bool {
    matches!(known(name), Some(OfNewFiles(_)))
}

/// Returns true for a PRAGMA that is on or off, so that any number but 0 is on.
pub fn is_switch(name: &str) -> bool {
    matches!(known(name), Some(Switch(_)))
}

/// Returns true if SQLite returns a row for the PRAGMA also when it has an argument.
pub fn answers(name: &str) -> bool {
    matches!(known(name), Some(Answered(_)))
}

/// Returns true if it lists objects of the schema.
pub fn lists_schema(name: &str) -> bool {
    matches!(known(name), Some(Lists))
}

/// Returns whether Flatwater, or one of its options, sets PRAGMA `name`.
pub fn is_ours(name: &str) -> bool {
    match known(name) {
        Some(Value(hint) | Switch(hint) | Answered(hint) | OfNewFiles(hint)) => hint != ON_OPEN,
        Some(_) => false,
        None => is_key(name),
    }
}

/// Returns true if `PRAGMA name`, or with an argument `PRAGMA name = argument`, may change how files are encrypted, or write
/// what is encrypted somewhere else. SQLCipher looks at each PRAGMA before SQLite does, and acts when it is prepared
/// (`sqlcipher_codec_pragma`). Some of its own change the file, some all files of the process. So where it is compiled in
/// (`can_encrypt`), what is not known is not allowed.
pub fn may_change_encryption(name: &str, argument: Option<&str>, can_encrypt: bool) -> bool {
    let is = |other: &str| name.eq_ignore_ascii_case(other);
    // With the last it rewrites the file.
    if KEY_PRAGMAS.iter().chain(&["cipher_migrate"]).any(|one| is(one)) {
        return true;
    }
    can_encrypt
        && match argument {
            _ if class(name, argument.is_some()) == Pragma::Unknown => true,
            // SQLCipher takes it for its own: that of the pages that it decrypts.
            Some(_) if is("page_size") => true,
            // Temporary files are not encrypted.
            Some(store) if is("temp_store") => store == "1" || store.eq_ignore_ascii_case("file"),
            _ => false,
        }
}

/// Returns true for the settings of SQLCipher (<https://www.zetetic.net/sqlcipher/sqlcipher-api/>).
pub fn is_of_sqlcipher(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("cipher") || name.ends_with("kdf_iter") || name == "rekey_cipher"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pragma_is_an_answer_or_state_of_the_database_or_of_the_connection() {
        assert_eq!(class("table_info", true), Pragma::Answer);
        assert_eq!(class("User_Version", false), Pragma::Answer);
        assert_eq!(class("user_version", true), Pragma::DatabaseState);
        assert_eq!(class("wal_checkpoint", false), Pragma::DatabaseState);
        assert_eq!(class("foreign_keys", false), Pragma::Answer);
        let hint = hint!["set it in the options: " ForeignKeys];
        assert_eq!(class("foreign_keys", true), Pragma::ConnectionState(hint));
        assert_eq!(class("no_such_pragma", false), Pragma::Unknown);
    }

    #[test]
    fn where_sqlcipher_is_compiled_in_only_known_pragmas_leave_the_encryption_as_it_is() {
        for (name, argument) in [
            ("cipher_default_kdf_iter", Some("1")),
            ("Cipher_Plaintext_Header_Size", Some("32")),
            ("cipher_use_hmac", Some("off")),
            ("cipher_log", Some("stdout")),
            ("cipher_profile", Some("stdout")),
            ("cipher_memory_security", None),
            ("cipher", Some("aes")),
            ("kdf_iter", Some("1")),
            ("one_of_a_later_version", None),
            ("page_size", Some("8192")),
            ("temp_store", Some("FILE")),
            ("temp_store", Some("1")),
        ] {
            assert!(
                may_change_encryption(name, argument, true) && !may_change_encryption(name, argument, false),
                "{name}"
            );
        }
        for (name, argument) in [("foreign_keys", Some("off")), ("page_size", None), ("temp_store", Some("memory"))] {
            assert!(!may_change_encryption(name, argument, true), "{name}");
        }
        assert!(
            may_change_encryption("ReKey", Some("s"), false) && may_change_encryption("cipher_migrate", None, false)
        );
    }
}
