//! No key is in the memory of the process when the database is closed. It is searched from within, in a process of its
//! own.

use std::fs::File;
use std::os::unix::fs::FileExt;

use flatwater::Options;
use flatwater::options::Key;
use flatwater_sqlite::Secret;

use super::EncryptedFile;
use crate::support::{count, empty_table, is_alone_in_process, run};

/// The needle is never in memory itself: each byte of it is masked.
struct Masked(Vec<u8>);

const MASK: u8 = 0x5a;

impl Masked {
    fn random(bytes: usize) -> Self {
        Self((0..bytes).map(|_| rand::random_range(b'a'..=b'z') ^ MASK).collect())
    }

    fn unmasked(&self) -> Secret {
        Secret::filled(self.0.len(), |bytes| {
            bytes.iter_mut().zip(&self.0).for_each(|(byte, masked)| *byte = masked ^ MASK)
        })
    }

    /// The same in hexadecimal digits.
    fn digits(&self) -> Self {
        let digit = |value: u8| b"0123456789abcdef"[usize::from(value)] ^ MASK;
        Self(self.0.iter().flat_map(|byte| [digit((byte ^ MASK) >> 4), digit((byte ^ MASK) & 15)]).collect())
    }

    /// Its second half: the first bytes of what is freed are the allocator's.
    fn tail(&self) -> Self {
        Self(self.0[self.0.len() / 2..].to_vec())
    }

    fn is_at(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.0.len() && self.0.iter().zip(bytes).all(|(masked, byte)| masked ^ MASK == *byte)
    }
}

/// Returns how often the needle is in the writable memory of this process. What was read is overwritten before the next
/// read, so that it is not found a second time where it was read to.
fn found(needle: &Masked) -> usize {
    const CHUNK: usize = 1 << 20;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let memory = File::open("/proc/self/mem").unwrap();
    let mut chunk = vec![0; CHUNK];
    let mut places = 0;
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"))) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (mut at, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        while at < to {
            let bytes = CHUNK.min(usize::try_from(to - at).unwrap());
            // Pages of the kernel's own cannot be read.
            let Ok(read) = memory.read_at(&mut chunk[..bytes], at) else { break };
            places += (0..read).filter(|place| needle.is_at(&chunk[*place..read])).count();
            chunk.fill(0);
            let next = at + read as u64;
            // A needle that begins at the end of this chunk is whole in the next one.
            at = if next < to { next - needle.0.len() as u64 + 1 } else { next };
        }
    }
    places
}

/// Opens, uses and closes an encrypted database. Calls `while_open` before it is closed.
fn use_database(key: &dyn Fn() -> Key, while_open: impl FnOnce()) {
    run(async {
        let file = EncryptedFile::unchecked();
        let other = EncryptedFile::unchecked();
        empty_table(Options::new(other.path()).key(key())).await.close().await.unwrap();
        let db = empty_table(Options::new(file.path()).key(key()).tuning(|t| t.attach("o", other.path()))).await;
        db.execute("INSERT INTO t VALUES (1)", ()).await.unwrap();
        db.backup(file.beside("copy.db")).await.unwrap();
        assert_eq!(count(&db).await, 1);
        assert!(Options::new(file.path()).key(Key::text("another")).open().await.is_err());
        while_open();
        db.close().await.unwrap();
        assert!(Options::new(file.path()).key(Key::text("another")).open().await.is_err());
    });
}

#[test]
fn no_key_is_left_in_memory() {
    if !is_alone_in_process("encryption::memory::no_key_is_left_in_memory", None) {
        return;
    }
    let (raw, passphrase) = (Masked::random(32), Masked::random(40));
    let raw_key = || Key::raw(raw.unmasked().bytes().try_into().unwrap());
    // In the form in which SQLCipher takes it.
    use_database(&raw_key, || assert!(found(&raw.digits().tail()) > 0, "an open database has its key"));
    assert_eq!((found(&raw.tail()), found(&raw.digits().tail())), (0, 0), "the raw key");
    let text = || Key::text(std::str::from_utf8(passphrase.unmasked().bytes()).unwrap());
    let tail = passphrase.tail();
    use_database(&text, || assert_eq!(found(&tail), 0, "an open database has forgotten the passphrase"));
    assert_eq!(found(&tail), 0, "the passphrase");
}
