//! Classifies PRAGMAs by what they change. Pure.
//!
//! Owns: the table of known PRAGMAs (<https://sqlite.org/pragma.html>). A PRAGMA either only returns a value, which any
//! connection can do; or changes the state of the database, which the writer does; or changes the state of one
//! connection. Only the options may do the last, because a caller does not know which connection serves it. Leaves out:
//! refusing a PRAGMA (`policy`).

use flatwater_sqlite::CAN_ENCRYPT;

use crate::error::hidden_keys::KEY_PRAGMAS;
use crate::error::hint::{Sentence, hint};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pragma {
    Answer,
    DatabaseState,
    /// Contains a hint on the supported alternative.
    ConnectionState(&'static Sentence),
    Unknown,
}

const KEY: &Sentence = hint!["set it in the options: " Key ", and change it with " Rekey];
const ON_OPEN: &Sentence = hint!["set it in the options, for every connection: " OnOpen];

/// Returns the class of `PRAGMA name` or, with an argument, of `PRAGMA name = argument`.
pub(crate) fn class(name: &str, has_argument: bool) -> Pragma {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "table_info" | "table_xinfo" | "table_list" | "index_list" | "index_info" | "index_xinfo"
        | "foreign_key_list" | "foreign_key_check" | "integrity_check" | "quick_check" | "database_list"
        | "collation_list" | "function_list" | "module_list" | "pragma_list" | "compile_options" | "data_version"
        | "freelist_count" | "page_count" => Pragma::Answer,
        "incremental_vacuum" | "optimize" | "wal_checkpoint" => Pragma::DatabaseState,
        "cipher_version" | "cipher_provider" | "cipher_provider_version" if CAN_ENCRYPT && !has_argument => {
            Pragma::Answer
        }
        // The integrity check asks it, with another argument each time.
        "cipher_integrity_check" if CAN_ENCRYPT && has_argument => Pragma::Answer,
        name if KEY_PRAGMAS.contains(&name) => Pragma::ConnectionState(KEY),
        "user_version" | "application_id" | "schema_version" => {
            if has_argument {
                Pragma::DatabaseState
            } else {
                Pragma::Answer
            }
        }
        "shrink_memory" => Pragma::ConnectionState(hint!["Flatwater opens and closes its connections as needed"]),
        "case_sensitive_like" => Pragma::ConnectionState(
            hint!["write the comparison into the SQL, for example with GLOB, or set it in the options: " OnOpen],
        ),
        "foreign_keys"
        | "synchronous"
        | "cache_size"
        | "mmap_size"
        | "busy_timeout"
        | "journal_mode"
        | "journal_size_limit"
        | "wal_autocheckpoint"
        | "query_only"
        | "temp_store"
        | "cache_spill"
        | "locking_mode"
        | "defer_foreign_keys"
        | "recursive_triggers"
        | "secure_delete"
        | "automatic_index"
        | "threads"
        | "trusted_schema"
        | "cell_size_check"
        | "checkpoint_fullfsync"
        | "fullfsync"
        | "ignore_check_constraints"
        | "legacy_alter_table"
        | "legacy_file_format"
        | "max_page_count"
        | "read_uncommitted"
        | "reverse_unordered_selects"
        | "soft_heap_limit"
        | "hard_heap_limit"
        | "analysis_limit"
        | "writable_schema"
        | "temp_store_directory"
        | "data_store_directory"
        | "empty_result_callbacks"
        | "full_column_names"
        | "page_size"
        | "auto_vacuum"
        | "encoding"
        | "short_column_names"
        | "count_changes"
        | "default_cache_size" => {
            if has_argument {
                Pragma::ConnectionState(advice(&name))
            } else {
                Pragma::Answer
            }
        }
        _ => Pragma::Unknown,
    }
}

/// Returns true if a file has it from its first page on, so that the PRAGMA has no effect on a file with pages.
pub(crate) fn is_of_new_files(name: &str) -> bool {
    ["page_size", "auto_vacuum", "encoding"].iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Returns true if `PRAGMA name`, or with an argument `PRAGMA name = argument`, may change how files are encrypted, or write
/// what is encrypted somewhere else. SQLCipher looks at each PRAGMA before SQLite does, and acts when it is prepared
/// (`sqlcipher_codec_pragma`). Some of its own change the file, some all files of the process. So where it is compiled in
/// (`can_encrypt`), what is not known is not allowed.
pub(crate) fn may_change_encryption(name: &str, argument: Option<&str>, can_encrypt: bool) -> bool {
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
pub(crate) fn is_of_sqlcipher(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("cipher") || name.ends_with("kdf_iter") || name == "rekey_cipher"
}

/// Returns whether Flatwater, or one of its options, sets PRAGMA `name`.
pub(crate) fn is_ours(name: &str) -> bool {
    advice(&name.to_ascii_lowercase()) != ON_OPEN
}

fn advice(name: &str) -> &'static Sentence {
    match name {
        name if KEY_PRAGMAS.contains(&name) => KEY,
        "foreign_keys" => hint!["set it in the options: " ForeignKeys],
        "synchronous" => hint!["set it in the options: " Durability],
        "cache_size" => hint!["set it in the options: " WriterCacheBytes " and " ReaderCacheBytes],
        "mmap_size" => hint!["set it in the options: " MmapBytes],
        "busy_timeout" => hint!["set it in the options: " BusyTimeout],
        "query_only" => hint!["set it in the options: " ReadOnly],
        "journal_mode" => hint!["Flatwater keeps the database in WAL mode; see " Journal],
        "wal_autocheckpoint" | "journal_size_limit" => hint!["Flatwater runs the checkpoints; see " Checkpoint],
        "temp_store" => hint!["set it in the options: " TempStore],
        "cache_spill" => hint!["set it in the options: " SpillBytes],
        "page_size" => hint!["set it in the options, for a file that is created: " PageSize],
        "auto_vacuum" => {
            hint![
                "set it in the options, for a file that is created: " AutoVacuum
                "; to change an existing file, use " VacuumsFile
            ]
        }
        "encoding" => hint!["a file keeps the encoding that it was created with"],
        "locking_mode" => hint!["a database is shared by several connections"],
        "defer_foreign_keys" => {
            hint!["use it inside of a transaction, or declare the foreign key DEFERRABLE INITIALLY DEFERRED"]
        }
        _ => ON_OPEN,
    }
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
