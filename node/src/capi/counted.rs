//! The memory of this module, counted, in builds for tests.
//!
//! Owns: the number of bytes that are allocated and not freed. Any thread. Leaves out: the memory of SQLite and of JavaScript.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, which counts.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// The bytes that are allocated now.
pub(crate) fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

// SAFETY: all calls go to the allocator of the system as they are.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of this function, which are those of that one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above; the memory is from `alloc`, which has it from there.
        unsafe { System.dealloc(memory, layout) }
    }
}
