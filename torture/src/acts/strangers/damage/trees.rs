//! Damage to the links between pages: b-tree headers, cells and pointers, overflow chains, the free list, pointer maps
//! (<https://sqlite.org/fileformat2.html#b_tree_pages>).

use rand::RngExt;
use rand::rngs::StdRng;

use super::{Damage, Target};
use crate::acts::strangers::stranger::{be16, be32, put};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "b-tree: header of a page", inflict: page_header },
    Damage { name: "b-tree: cell pointer", inflict: cell_pointer },
    Damage { name: "b-tree: length of a cell", inflict: cell_length },
    Damage { name: "b-tree: child page", inflict: child },
    Damage { name: "b-tree: rightmost child", inflict: right_child },
    Damage { name: "overflow: next page", inflict: overflow },
    Damage { name: "overflow: a chain that loops", inflict: overflow_loop },
    Damage { name: "free list: a trunk that is its own next", inflict: trunk_loop },
    Damage { name: "free list: count of leaves", inflict: leaf_count },
    Damage { name: "free list: a leaf that is in use", inflict: leaf_in_use },
    Damage { name: "pointer map: an entry", inflict: pointer_map },
];

/// Returns a random page of one of these kinds, and the offset of its first byte.
fn any(target: &Target<'_>, rng: &mut StdRng, sorts: &[&str]) -> Option<(usize, usize)> {
    let pages: Vec<_> = target.pages.iter().filter(|page| sorts.contains(&page.sort.as_str())).collect();
    let page = pages.get(rng.random_range(0..pages.len().max(1)))?.number;
    Some((page, (page - 1) * target.files.page_size()))
}

/// Returns a page and the offset of its b-tree header.
fn tree(target: &Target<'_>, rng: &mut StdRng, sorts: &[&str]) -> Option<(usize, usize)> {
    let (page, start) = any(target, rng, sorts)?;
    Some((page, if page == 1 { start + 100 } else { start }))
}

/// Returns a page number that is in use, the first, zero, or beyond the end.
fn wrong_page(target: &Target<'_>, rng: &mut StdRng) -> u32 {
    let pages = u32::try_from(target.files.pages()).unwrap_or(1).max(1);
    let wrong = [0, 1, 2, pages, pages + 1, u32::MAX, rng.random_range(1..=pages), rng.random_range(1..=pages)];
    wrong[rng.random_range(0..wrong.len())]
}

fn page_header(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, header) = tree(target, rng, &["internal", "leaf"])?;
    let sorts: [u8; 6] = [0, 2, 5, 10, 13, 0xff];
    let edges: [u16; 7] = [0, 1, 2, 100, 0x7fff, 0xffff, rng.random()];
    let edge = edges[rng.random_range(0..edges.len())];
    let (field, at, bytes) = match rng.random_range(0..5) {
        0 => ("sort of page", 0, vec![sorts[rng.random_range(0..sorts.len())]]),
        1 => ("first free block", 1, edge.to_be_bytes().to_vec()),
        2 => ("count of cells", 3, edge.to_be_bytes().to_vec()),
        3 => ("start of the cells", 5, edge.to_be_bytes().to_vec()),
        _ => ("free fragments", 7, vec![rng.random()]),
    };
    put(&mut target.files.main, header + at, &bytes);
    Some(format!("page {page}: {field} = {bytes:?}"))
}

/// Returns a page, its offset, and the offset of the pointer to one of its cells.
fn pointer(target: &Target<'_>, rng: &mut StdRng, sorts: &[&str]) -> Option<(usize, usize, usize)> {
    let (page, header) = tree(target, rng, sorts)?;
    let main = &target.files.main;
    let cells = usize::from(be16(main, header + 3));
    let first = header + if matches!(main.get(header)?, 2 | 5) { 12 } else { 8 };
    let start = (page - 1) * target.files.page_size();
    (cells > 0).then(|| (page, start, first + 2 * rng.random_range(0..cells)))
}

fn cell_pointer(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, _, at) = pointer(target, rng, &["internal", "leaf"])?;
    let size = u16::try_from(target.files.page_size()).unwrap_or(0);
    let wrong = [0, 3, 100, size.wrapping_sub(1), size.wrapping_sub(4), 0xffff, rng.random()];
    let new = wrong[rng.random_range(0..wrong.len())];
    put(&mut target.files.main, at, &new.to_be_bytes());
    Some(format!("page {page}: the pointer at {at} is {new}"))
}

fn cell_length(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, start, at) = pointer(target, rng, &["leaf"])?;
    let cell = start + usize::from(be16(&target.files.main, at));
    let lengths: [&[u8]; 6] =
        [&[0], &[0x7f], &[0xff, 0x7f], &[0x87, 0xff, 0xff, 0xff, 0x7f], &[0x8f, 0xff, 0xff, 0xff, 0x7f], &[0xff; 9]];
    let new = lengths[rng.random_range(0..lengths.len())];
    // Either the payload's length or the bytes after it: a rowid, or column lengths.
    let into = rng.random_range(0..6);
    put(&mut target.files.main, cell + into, new);
    Some(format!("page {page}: cell at {cell}, byte {into} = {new:?}"))
}

fn child(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, start, at) = pointer(target, rng, &["internal"])?;
    let cell = start + usize::from(be16(&target.files.main, at));
    let own = u32::try_from(page).ok()?;
    let new = if rng.random_bool(0.2) { own } else { wrong_page(target, rng) };
    put(&mut target.files.main, cell, &new.to_be_bytes());
    Some(format!("page {page}: the child in the cell at {cell} is {new}"))
}

fn right_child(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, header) = tree(target, rng, &["internal"])?;
    let new = wrong_page(target, rng);
    put(&mut target.files.main, header + 8, &new.to_be_bytes());
    Some(format!("page {page}: the rightmost child is {new}"))
}

fn overflow(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (page, start) = any(target, rng, &["overflow"])?;
    let new = wrong_page(target, rng);
    put(&mut target.files.main, start, &new.to_be_bytes());
    Some(format!("page {page}: the next one is {new}"))
}

fn overflow_loop(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let ((page, start), (back, _)) = (any(target, rng, &["overflow"])?, any(target, rng, &["overflow"])?);
    put(&mut target.files.main, start, &u32::try_from(back).ok()?.to_be_bytes());
    Some(format!("page {page}: the next one is {back}"))
}

/// Returns the first trunk page of the free list and the offset of its first byte.
fn trunk(target: &Target<'_>) -> Option<(u32, usize)> {
    let trunk = be32(&target.files.main, 32);
    let start = usize::try_from(trunk.checked_sub(1)?).ok()? * target.files.page_size();
    (start < target.files.main.len()).then_some((trunk, start))
}

fn trunk_loop(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let (trunk, start) = trunk(target)?;
    put(&mut target.files.main, start, &trunk.to_be_bytes());
    Some(format!("page {trunk}"))
}

fn leaf_count(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (trunk, start) = trunk(target)?;
    let new = [0, 1, 0x7fff, 0x7fff_ffff, u32::MAX][rng.random_range(0..5)];
    put(&mut target.files.main, start + 4, &new.to_be_bytes());
    Some(format!("page {trunk}: {new}"))
}

fn leaf_in_use(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (trunk, start) = trunk(target)?;
    let new = wrong_page(target, rng);
    put(&mut target.files.main, start + 8, &new.to_be_bytes());
    Some(format!("page {trunk}: the first leaf is {new}"))
}

fn pointer_map(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    if be32(&target.files.main, 52) == 0 {
        return None;
    }
    let size = target.files.page_size();
    let (entry, sort) = (rng.random_range(0..target.files.pages().min(size / 5).max(1)), rng.random_range(0..7_u8));
    let parent = wrong_page(target, rng);
    put(&mut target.files.main, size + 5 * entry, &[sort]);
    put(&mut target.files.main, size + 5 * entry + 1, &parent.to_be_bytes());
    Some(format!("entry {entry}: sort {sort}, parent {parent}"))
}
