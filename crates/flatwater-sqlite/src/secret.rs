//! Bytes that nobody else may see: a key.
//!
//! Owns: the bytes. Usable on any thread. Invariants: the bytes are never moved, so no copy of
//! them is left behind; they are overwritten when the value is dropped; no text has them in it. Leaves out: what the
//! bytes mean, the copies that others make of them, and overwriting, which the crate `zeroize` does.

use zeroize::Zeroizing;

/// Bytes that are overwritten when they are dropped.
pub struct Secret(Zeroizing<Box<[u8]>>);

impl Secret {
    /// Copies bytes. What they are copied from is not overwritten.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// Makes a secret of `count` bytes that `fill` writes.
    pub fn filled(count: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut secret = Self(Zeroizing::new(vec![0; count].into_boxed_slice()));
        fill(&mut secret.0);
        secret
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_a_secret_in_it() {
        let secret = Secret::filled(4, |bytes| bytes.copy_from_slice(b"open"));
        assert_eq!((secret.bytes(), &*format!("{secret:?}")), (&b"open"[..], "Secret"));
    }
}
