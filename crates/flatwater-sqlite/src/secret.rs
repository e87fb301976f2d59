//! Bytes that nobody else may see: a key.
//!
//! Owns: the bytes, and overwriting them. Usable on any thread. Invariants: the bytes are never moved, so no copy of
//! them is left behind; they are overwritten when the value is dropped; no text has them in it. Leaves out: what the
//! bytes mean, and the copies that others make of them.

use std::sync::atomic::{Ordering, compiler_fence};

/// Bytes that are overwritten when they are dropped.
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Copies bytes. What they are copied from is not overwritten.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Makes a secret of `count` bytes that `fill` writes.
    pub fn filled(count: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut secret = Self(vec![0; count].into_boxed_slice());
        fill(&mut secret.0);
        secret
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        for byte in &mut self.0 {
            // SAFETY: a reference is valid and aligned. A volatile write is not left out, though nobody reads it.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        compiler_fence(Ordering::SeqCst);
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
