//! Blocks in which the rows of an earlier call were, for those of a later one.
//!
//! Owns: a few of them, for the whole process. Runs on the threads that collect rows and on those that drop them. Invariants: they
//! take no more than `MOST_BYTES`; one that is taken is empty. The lock is held to move blocks and for nothing else. Leaves out:
//! results, which the program keeps for as long as it wants.
//!
//! Rows are collected on the caller's thread and dropped on the writer's. An allocator gives memory like that back to the system,
//! and the next call maps it anew, with a page fault for every 4 KiB.

use flatwater_sqlite::PerProcess;

use super::block::Block;

/// All of them together take no more memory than this.
const MOST_BYTES: usize = 4 << 20;
/// One that takes less is allocated as quickly; one that takes more was for long values.
const SIZES: std::ops::RangeInclusive<usize> = 32 << 10..=512 << 10;

#[derive(Default)]
struct Spare {
    blocks: Vec<Block>,
    bytes: usize,
}

static SPARE: PerProcess<Spare> = PerProcess::new(Spare::default);

/// Returns an empty block that has memory, if there is one.
pub(super) fn take() -> Option<Block> {
    let mut spare = SPARE.lock();
    let block = spare.blocks.pop()?;
    spare.bytes -= block.capacity_bytes();
    Some(block)
}

/// Keeps the memory of these blocks, or of some.
pub(super) fn keep(blocks: impl Iterator<Item = Block>) {
    let (kept, mut dropped): (Vec<_>, Vec<_>) = blocks.partition(|block| SIZES.contains(&block.capacity_bytes()));
    let mut spare = SPARE.lock();
    for mut block in kept {
        let bytes = spare.bytes + block.capacity_bytes();
        if bytes <= MOST_BYTES {
            block.clear();
            spare.bytes = bytes;
            spare.blocks.push(block);
        } else {
            dropped.push(block);
        }
    }
    // The others are freed without the lock.
    drop(spare);
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_empty_and_no_more_is_kept_than_the_limit() {
        let block = |cells| {
            let mut block = Block::with_room(cells, 0);
            block.integer(7);
            block
        };
        // Other tests take and keep blocks too.
        for _ in 0..3 {
            keep((0..1_000).map(|_| block(4_096)));
            let spare = SPARE.lock();
            assert!(spare.bytes <= MOST_BYTES && spare.blocks.len() <= MOST_BYTES >> 15);
            drop(spare);
            if let Some(taken) = take() {
                assert_eq!((taken.cells(), taken.bytes()), (0, 0));
            }
        }
        keep([block(1), block(1 << 20)].into_iter());
        assert!(SPARE.lock().blocks.iter().all(|block| SIZES.contains(&block.capacity_bytes())));
    }
}
