//! The key of a connection that was just opened.
//!
//! Owns: giving the key to SQLCipher before anything reads the file, remembering what it derives of it, and the errors
//! for a key that does not open a file. Runs on the thread that opens the connection, and blocks it while SQLCipher
//! derives a key, for the first connection of a database. Invariant: of one database a passphrase is derived once for
//! each file. Leaves out: the key (`options::key`), attached files (`settings`).

use std::path::Path;

use flatwater_sqlite::{Bindings, CAN_ENCRYPT, Cipher, Discard, PLAIN_HEADER, Sqlite};
use rusqlite::types::ValueRef;
use rusqlite::{OpenFlags, ffi};

use crate::options::{Attached, Key, Options};
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};

/// The pages of an encrypted file, in bytes.
const PAGE_BYTES: u64 = 4096;

/// Opens a file that no engine has, or not with this key. The connection has no settings but the key.
pub(crate) fn open_alone(path: &Path, key: Option<&Key>, vfs: Option<&str>) -> Result<Sqlite> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI;
    let sqlite = Sqlite::open(path, flags, vfs)?;
    if let Some(key) = key {
        Cipher::of(&sqlite).set_key(key.of_file(path)?.bytes())?;
    }
    Ok(sqlite)
}

/// Gives SQLCipher the key, if there is one.
pub(super) fn unlock(sqlite: &Sqlite, options: &Options) -> Result<()> {
    let Some(key) = &options.key else { return Ok(()) };
    Ok(Cipher::of(sqlite).set_key(key.of_file(&options.path)?.bytes())?)
}

/// Remembers the derived keys of the files, which were read by now. A file that has no page yet has none.
pub(super) fn remember(sqlite: &Sqlite, options: &Options) {
    let Some(key) = options.key.as_ref().filter(|key| !key.is_derived()) else { return };
    let attached = options.attach.iter().map(|attached| (&*attached.name, &attached.path));
    let files = std::iter::once(("main", &options.path)).chain(attached);
    let derived = files.map(|(name, path)| Some((path.clone(), Cipher::of(sqlite).derived(name)?)));
    if let Some(all) = derived.collect::<Option<Vec<_>>>() {
        key.derived(all);
    }
}

/// Says of a file that is no database whether it is the key, if that can be told.
pub(super) fn explain(error: Error, sqlite: &Sqlite, options: &Options) -> Error {
    if !is_no_database(&error) || error.operation().is_some() {
        return error;
    }
    let (path, header) = (options.path.display(), Cipher::of(sqlite).header("main"));
    let refuse = |sentence: String| Error::new(ErrorCode::WrongKey, sentence).in_operation("open");
    match (options.key.is_some(), header) {
        (true, None) => refuse(format!("{path} is too short to be an encrypted database")).with_hint("check the path"),
        (true, Some(header)) if header == *PLAIN_HEADER => {
            refuse(format!("{path} is not encrypted, and a key was given"))
                .with_hint(hint!["open it without the key; " Export " makes an encrypted copy of it"])
        }
        (true, Some(_)) => refuse(format!("the key does not open {path}")).with_hint(
            "it is another key, or the file is no database of SQLCipher 4 with its default settings, or its first page is \
             damaged",
        ),
        (false, Some(header)) if looks_encrypted(&header, options) => {
            let error = refuse(format!("{path} is encrypted, or is no SQLite database, and no key was given"));
            match CAN_ENCRYPT {
                true => error.with_hint(hint!["if it is encrypted, open it with " Key]),
                false => error.with_hint(hint!["if it is encrypted, open it with " Key ", for which " Encryption]),
            }
        }
        (false, _) => error,
    }
}

/// Returns true for whole pages that begin with what is no text. Everything in an encrypted file looks random.
fn looks_encrypted(header: &[u8; 16], options: &Options) -> bool {
    let bytes = std::fs::metadata(&options.path).map_or(0, |file| file.len());
    let is_text = header.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace());
    bytes > 0 && bytes.is_multiple_of(PAGE_BYTES) && !is_text && header != PLAIN_HEADER && *header != [0; 16]
}

/// Attaches a file with the key of the database, if it has one.
pub(crate) fn attach(sqlite: &mut Sqlite, attached: &Attached, place: &str, options: &Options) -> Result<()> {
    if !CAN_ENCRYPT {
        sqlite.rusqlite().execute("ATTACH ?1 AS ?2", (place, &attached.name))?;
        return Ok(());
    }
    let key = options.key.as_ref().map(|key| key.of_file(&attached.path)).transpose()?;
    let Some(statement) = sqlite.prepare("ATTACH ?1 AS ?2 KEY ?3")? else { return Ok(()) };
    // An empty key is none. Without the clause SQLCipher would take that of the main database, with its salt.
    let key = key.as_ref().map_or(&b""[..], |key| key.bytes());
    let ran = sqlite
        .statement(statement.id)
        .run(&AttachedBy([place.as_bytes(), attached.name.as_bytes(), key]), &mut Discard);
    sqlite.statement(statement.id).finalize();
    Ok(ran?)
}

pub(super) fn is_no_database(error: &Error) -> bool {
    error.sqlite_code().is_some_and(|code| code & 0xff == ffi::SQLITE_NOTADB)
}

/// The values of ATTACH. SQLite reads them where they are, so no copy of the key is left in its memory.
struct AttachedBy<'a>([&'a [u8]; 3]);

impl Bindings for AttachedBy<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> ValueRef<'_> {
        ValueRef::Text(self.0[index])
    }

    fn name(&self, _: usize) -> Option<&str> {
        None
    }
}

#[cfg(all(test, feature = "sqlcipher"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::connection::EngineConnection;
    use crate::connection::open::Role;

    /// SQLCipher takes a tenth of a second to derive one.
    #[test]
    fn the_first_connection_derives_the_keys_of_all_files_and_the_others_are_given_them() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["a.db", "b.db"].map(|name| directory.path().join(name));
        let options =
            Options::new(&path).key(Key::text("open sesame")).tuning(|t| t.attach("other", &other)).resolve().unwrap();
        let open = |role| EngineConnection::open(&options, &Arc::default(), role, Box::new(|_| false)).unwrap();
        let key = options.key.as_ref().unwrap();
        let first = open(Role::Creator);
        assert!(!key.is_derived(), "the attached file has no page yet");
        first.sqlite.execute_batch("CREATE TABLE other.t (a)").unwrap();
        drop(first);
        drop(open(Role::Writer));
        assert!(key.is_derived());
        let [main, attached] = [&path, &other].map(|path| key.of_file(path).unwrap());
        assert!(main.bytes().starts_with(b"x'") && main.bytes() != attached.bytes());
        for role in [Role::Writer, Role::Reader, Role::Checkpointer] {
            let again = open(role);
            assert_eq!(Cipher::of(&again.sqlite).derived("main").unwrap().bytes(), main.bytes());
        }
    }
}
