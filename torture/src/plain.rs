//! Plain SQLite, beside Flatwater: with the feature `sqlcipher` also for encrypted files.

use std::path::Path;

use flatwater::options::Key;
use rusqlite::Connection;

/// The raw key of the files that are encrypted.
const KEY: [u8; 32] = *b"the key of files that are broken";

/// Returns it for Flatwater.
pub(crate) fn key() -> Key {
    Key::raw(&KEY)
}

/// Opens a file as another program does.
pub(crate) fn open(path: &Path, is_encrypted: bool) -> rusqlite::Result<Connection> {
    let plain = Connection::open(path)?;
    if is_encrypted {
        let digits: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
        plain.pragma_update(None, "key", format!("x'{digits}'"))?;
    }
    Ok(plain)
}
