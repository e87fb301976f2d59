//! The key of an encrypted database.
//!
//! Owns: the key as its caller gave it, what SQLCipher derived from it for each file, and comparing keys. Usable on any
//! thread. Invariants: no text has a key in it; a key is overwritten in memory when the last clone of it is dropped;
//! the key of an open database is a copy of its own, which forgets what the caller gave as soon as all its files have a
//! derived key. Leaves out: giving it to SQLCipher (`connection::open`).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

use flatwater_sqlite::{CAN_ENCRYPT, Secret};

use super::resolve::refuse_first;
use super::{Options, TempStore};
use flatwater_base::error::hint::hint;
use flatwater_base::error::{Error, ErrorCode, Result};
use flatwater_base::thread::lock;

/// The size of a raw key, in bytes.
const RAW_BYTES: usize = 32;
/// The pages of a file of SQLCipher 4, in bytes. Their size cannot be read from the file, because it is encrypted.
const PAGE_BYTES: u32 = 4096;

/// The key of an encrypted database, for [`Options::key`]: a passphrase, or the bytes of the key itself.
///
/// The bytes are overwritten in memory when the last clone is dropped. No `Debug`, error, event or counter contains
/// them.
#[derive(Clone)]
pub struct Key(Arc<Mutex<Held>>);

struct Held {
    /// Equal for equal keys, and tells nothing of the key to who does not have the memory of the process.
    mark: [u64; 2],
    /// As SQLCipher takes it. `None` once each file has a derived key.
    given: Option<Arc<Secret>>,
    derived: Vec<(PathBuf, Arc<Secret>)>,
}

impl Key {
    /// Makes a key of a passphrase. SQLCipher derives the key of a file from it, with the salt of the file: 256,000
    /// rounds of PBKDF2, about a tenth of a second for each `open`. As everywhere in SQLCipher, a text `x'...'` with 64
    /// hexadecimal digits is the raw key of these bytes. An empty passphrase is refused when the database is opened.
    #[must_use]
    pub fn text(passphrase: &str) -> Self {
        Self::new(Secret::copy_of(passphrase.as_bytes()))
    }

    /// Makes a key of the 32 bytes of the key itself. They must be random: nothing is derived from them but the key of
    /// the checksums, so opening takes no time.
    #[must_use]
    pub fn raw(key: &[u8; RAW_BYTES]) -> Self {
        // SQLCipher takes a raw key in this form only.
        Self::new(Secret::filled(3 + 2 * RAW_BYTES, |text| {
            let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' - 10 + value };
            text[..2].copy_from_slice(b"x'");
            for (at, byte) in key.iter().enumerate() {
                text[2 + 2 * at] = digit(byte >> 4);
                text[3 + 2 * at] = digit(byte & 15);
            }
            text[2 + 2 * RAW_BYTES] = b'\'';
        }))
    }

    fn new(given: Secret) -> Self {
        let held = Held { mark: mark(given.bytes()), given: Some(Arc::new(given)), derived: Vec::new() };
        Self(Arc::new(Mutex::new(held)))
    }

    /// Returns the key of a database that is about to be opened, of which no one else has a clone.
    pub(crate) fn of_its_own(&self) -> Self {
        match &lock(&self.0).given {
            Some(given) => Self::new(Secret::copy_of(given.bytes())),
            None => self.clone(),
        }
    }

    /// Returns what opens the file, as SQLCipher takes it.
    pub(crate) fn of_file(&self, path: &Path) -> Result<Arc<Secret>> {
        let held = lock(&self.0);
        let derived = held.derived.iter().find(|(file, _)| file == path).map(|(_, derived)| derived);
        let key = derived.or(held.given.as_ref()).cloned();
        key.ok_or_else(|| Error::new(ErrorCode::Internal, format!("{} has no key; please report it", path.display())))
    }

    /// Keeps the derived keys of all files of a database, and forgets what was given.
    pub(crate) fn derived(&self, all: Vec<(PathBuf, Secret)>) {
        let mut held = lock(&self.0);
        if held.derived.is_empty() {
            held.derived = all.into_iter().map(|(path, derived)| (path, Arc::new(derived))).collect();
            held.given = None;
        }
    }

    /// Returns true if each file has a derived key.
    pub(crate) fn is_derived(&self) -> bool {
        lock(&self.0).given.is_none()
    }

    /// Becomes the other key.
    pub(crate) fn become_key(&self, other: &Self) {
        let (mark, given) = {
            let other = lock(&other.0);
            (other.mark, other.given.clone())
        };
        *lock(&self.0) = Held { mark, given, derived: Vec::new() };
    }

    /// Refuses a key that is none, and any key in a build that cannot encrypt.
    pub(crate) fn check(&self) -> Result<()> {
        check_encryption()?;
        if lock(&self.0).given.as_ref().is_some_and(|given| given.bytes().is_empty()) {
            return Err(Error::new(ErrorCode::NoEncryption, "the key is empty"));
        }
        Ok(())
    }
}

/// Refuses a build that cannot encrypt.
pub(crate) fn check_encryption() -> Result<()> {
    if CAN_ENCRYPT {
        return Ok(());
    }
    Err(Error::new(ErrorCode::NoEncryption, "this program was built without encryption")
        .with_hint(hint!["" Encryption]))
}

/// Two keyed hashes, with keys that each process chooses for itself. They take the bytes through registers, and leave
/// no copy.
fn mark(key: &[u8]) -> [u64; 2] {
    static HASHES: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    HASHES.each_ref().map(|hash| {
        let mut hasher = hash.build_hasher();
        hasher.write(key);
        hasher.finish()
    })
}

/// Equal if they were made of the same passphrase, or of the same bytes.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        let own = lock(&self.0).mark;
        own == lock(&other.0).mark
    }
}

impl Eq for Key {}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Options {
    /// Opens an encrypted file, or creates one: SQLCipher encrypts each page, also in the WAL and in backups. Needs the
    /// cargo feature `sqlcipher`; without it the open fails with [`Misuse`](flatwater_base::error::ErrorKind::Misuse).
    ///
    /// The file is one of SQLCipher 4 with its default settings, which other programs with SQLCipher open with the same
    /// key. Attached files are encrypted with the same key. Temporary data stays in memory. A key that does not open
    /// the file, a file that is not encrypted, and an encrypted file without a key are errors of kind
    /// [`Key`](crate::ErrorKind::Key). Default: none, and the file is plain.
    ///
    /// ```no_run
    /// # async fn example() -> flatwater::Result<()> {
    /// use flatwater::Options;
    /// use flatwater::options::Key;
    ///
    /// let passphrase = std::env::var("APP_KEY").unwrap_or_default();
    /// let db = Options::new("app.db").key(Key::text(&passphrase)).open().await?;
    /// # Ok(()) }
    /// ```
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Refuses what cannot be encrypted, or would write plain data.
    pub(super) fn check_key(&self) -> Result<()> {
        let Some(key) = &self.key else { return Ok(()) };
        key.check().map_err(|error| error.in_operation("open"))?;
        refuse_first([
            (self.is_memory(), "a database in memory is not encrypted, and takes no `key`"),
            (
                self.temp_store == TempStore::File,
                "temporary files are not encrypted, so `temp_store` cannot be files beside a `key`",
            ),
            (
                self.page_size.is_some_and(|bytes| bytes != PAGE_BYTES),
                "an encrypted file has pages of 4,096 bytes, so `page_size` cannot be another one beside a `key`",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_equal_if_they_were_made_of_the_same_and_no_text_shows_them() {
        let key = Key::text("open sesame");
        assert_eq!(key, Key::text("open sesame"));
        assert_ne!(key, Key::text("open Sesame"));
        assert_eq!(Key::raw(&[0x1f; 32]), Key::text(&format!("x'{}'", "1f".repeat(32))));
        assert_eq!(format!("{key:?}"), "Key");
        assert_eq!(Options::new("a").key(key.clone()).difference(&Options::new("a")), Some("key"));
        assert_eq!(Options::new("a").key(key).difference(&Options::new("a").key(Key::text("open sesame"))), None);
    }

    #[test]
    fn a_key_of_its_own_forgets_what_was_given_and_the_callers_does_not() {
        let callers = Key::text("open sesame");
        let own = callers.of_its_own();
        own.derived(vec![("a".into(), Secret::copy_of(b"derived"))]);
        assert!(own.is_derived() && own == callers);
        assert_eq!(own.of_file(Path::new("a")).unwrap().bytes(), b"derived");
        assert_eq!(own.of_file(Path::new("b")).unwrap_err().kind(), flatwater_base::error::ErrorKind::Misuse);
        assert_eq!(callers.of_file(Path::new("a")).unwrap().bytes(), b"open sesame");
    }

    #[test]
    fn a_key_that_became_another_is_equal_to_it() {
        let (key, other) = (Key::text("one"), Key::text("two"));
        key.become_key(&other);
        assert_eq!(key, other);
        assert_eq!(key.of_file(Path::new("a")).unwrap().bytes(), b"two");
    }
}
