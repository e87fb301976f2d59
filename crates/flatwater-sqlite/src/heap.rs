//! How much memory SQLite takes for what this thread runs.
//!
//! Owns: an allocator in front of SQLite's own, and for each thread the bytes that it may still take. Runs inside of SQLite, on
//! any thread. SQLite's limits of memory are those of the whole process; one statement has a limit here. Invariants: memory comes
//! from SQLite's own allocator and goes back to it, so that it does not matter through which of the two a piece came; a
//! thread without a limit is refused nothing, and pays for a look at a variable of its own; what a thread frees it may take again.
//! Leaves out: when a thread has a limit (`hooks::interrupts`), and what SQLite does when it gets no memory: the statement fails
//! with SQLITE_NOMEM.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Once, OnceLock};

use rusqlite::ffi;

/// The methods of the allocator that SQLite had before.
struct Own(ffi::sqlite3_mem_methods);

// SAFETY: functions that any thread may call, and a pointer that only SQLite uses.
unsafe impl Send for Own {}
// SAFETY: as above; nothing changes them.
unsafe impl Sync for Own {}

static OWN: OnceLock<Own> = OnceLock::new();

thread_local! {
    /// The bytes that this thread may still take. `None`: any number.
    static LEFT: Cell<Option<i64>> = const { Cell::new(None) };
    static HAS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread take so many bytes from now on, or any number.
pub(crate) fn limit(bytes: Option<usize>) {
    LEFT.set(bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)));
    HAS_REFUSED.set(false);
}

/// Returns true if SQLite was refused memory since the last [`limit`].
pub(crate) fn has_refused() -> bool {
    HAS_REFUSED.get()
}

/// Has SQLite allocate by way of this module, unless it was initialised before, by other code of the program: then no thread has
/// a limit.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: SQLite writes the methods that it has, or its default ones; all zeros are none.
        let (code, own) = unsafe {
            let mut own: ffi::sqlite3_mem_methods = std::mem::zeroed();
            (ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, &raw mut own), own)
        };
        let is_whole = own.xMalloc.is_some() && own.xFree.is_some() && own.xRealloc.is_some() && own.xSize.is_some();
        if code != ffi::SQLITE_OK || !is_whole {
            return;
        }
        let Own(own) = OWN.get_or_init(|| Own(own));
        let ours =
            ffi::sqlite3_mem_methods { xMalloc: Some(malloc), xFree: Some(free), xRealloc: Some(realloc), ..*own };
        // SAFETY: the methods have SQLite's signatures and are copied. SQLite refuses them once it is initialised. A thread of
        // other code that initialises it at this moment may see some of the new methods and some of the old ones, which
        // is right: all of them allocate from the old ones, and add nothing to a piece.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const ours) };
    });
}

/// The size of a piece, for a thread with a limit.
///
/// # Safety
/// `piece` was allocated by SQLite and not freed.
unsafe fn size(own: &ffi::sqlite3_mem_methods, piece: *mut c_void) -> i64 {
    // SAFETY: as the caller promises.
    own.xSize.map_or(0, |size| unsafe { size(piece) }).into()
}

/// Returns true if the thread may take so many bytes more.
fn may_take(bytes: i64) -> bool {
    let may = LEFT.get().is_none_or(|left| bytes <= left);
    if !may {
        HAS_REFUSED.set(true);
    }
    may
}

fn took(bytes: i64) {
    if let Some(left) = LEFT.get() {
        LEFT.set(Some(left.saturating_sub(bytes)));
    }
}

unsafe extern "C" fn malloc(bytes: c_int) -> *mut c_void {
    let Some((own, malloc)) = OWN.get().and_then(|Own(own)| own.xMalloc.map(|malloc| (own, malloc))) else {
        return ptr::null_mut();
    };
    if !may_take(bytes.into()) {
        return ptr::null_mut();
    }
    // SAFETY: SQLite's own method, with its argument; the piece was just allocated.
    unsafe {
        let piece = malloc(bytes);
        if LEFT.get().is_some() && !piece.is_null() {
            took(size(own, piece));
        }
        piece
    }
}

unsafe extern "C" fn free(piece: *mut c_void) {
    let Some((own, free)) = OWN.get().and_then(|Own(own)| own.xFree.map(|free| (own, free))) else { return };
    // SAFETY: SQLite's own methods, with the piece that SQLite frees, which is not null.
    unsafe {
        if LEFT.get().is_some() {
            took(-size(own, piece));
        }
        free(piece);
    }
}

unsafe extern "C" fn realloc(piece: *mut c_void, bytes: c_int) -> *mut c_void {
    let Some((own, realloc)) = OWN.get().and_then(|Own(own)| own.xRealloc.map(|realloc| (own, realloc))) else {
        return ptr::null_mut();
    };
    // SAFETY: SQLite's own methods, with its arguments: a piece, which is not null and not used any more if another one is
    // returned.
    unsafe {
        if LEFT.get().is_none() {
            return realloc(piece, bytes);
        }
        let before = size(own, piece);
        if !may_take(i64::from(bytes) - before) {
            return ptr::null_mut();
        }
        let after = realloc(piece, bytes);
        if !after.is_null() {
            took(size(own, after) - before);
        }
        after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_what_it_may_and_what_it_frees_again() {
        install();
        // SAFETY: pieces of SQLite's allocator, each freed once.
        unsafe {
            ffi::sqlite3_initialize();
            let before = ffi::sqlite3_malloc(100_000);
            limit(Some(1_000_000));
            let first = ffi::sqlite3_malloc(600_000);
            assert!(!first.is_null());
            let is_refused = ffi::sqlite3_malloc(600_000).is_null();
            // Where another test initialised SQLite first, nothing is limited.
            assert_eq!(is_refused, has_refused());
            if is_refused {
                assert!(ffi::sqlite3_realloc(first, 1_200_000).is_null(), "it stays");
                ffi::sqlite3_free(first);
                let again = ffi::sqlite3_malloc(600_000);
                assert!(!again.is_null());
                ffi::sqlite3_free(again);
            }
            limit(None);
            assert!(!has_refused());
            let large = ffi::sqlite3_malloc(2_000_000);
            assert!(!large.is_null());
            ffi::sqlite3_free(large);
            ffi::sqlite3_free(before);
        }
    }
}
