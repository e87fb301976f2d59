//! Damage to whole pages: lost writes, writes at a wrong place, pages of another database.

use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{Damage, Target};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "a page of zeros", inflict: zeros },
    Damage { name: "a page of noise", inflict: noise },
    Damage { name: "two pages swapped", inflict: swapped },
    Damage { name: "a page in two places", inflict: copied },
    Damage { name: "the second half of a page is another's", inflict: torn },
    Damage { name: "a page of another database", inflict: foreign },
    Damage { name: "a page taken out", inflict: removed },
    Damage { name: "a page put in", inflict: inserted },
];

/// Returns a random page number.
fn any(target: &Target<'_>, rng: &mut StdRng) -> Option<usize> {
    let pages = target.files.pages();
    (pages > 0).then(|| rng.random_range(1..=pages))
}

fn zeros(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let page = any(target, rng)?;
    target.files.page_mut(page)?.fill(0);
    Some(format!("page {page}"))
}

fn noise(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let page = any(target, rng)?;
    rng.fill_bytes(target.files.page_mut(page)?);
    Some(format!("page {page}"))
}

/// Returns the byte range of a page. Page 1 contains the page size, so this is called before any page changes.
fn range(target: &Target<'_>, page: usize) -> Range<usize> {
    let size = target.files.page_size();
    (page - 1) * size..page * size
}

fn swapped(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (a, b) = (any(target, rng)?, any(target, rng)?);
    let (first, second) = (range(target, a), range(target, b));
    let main = &mut target.files.main;
    let page = main[first.clone()].to_vec();
    main.copy_within(second.clone(), first.start);
    main[second].copy_from_slice(&page);
    (a != b).then(|| format!("pages {a} and {b}"))
}

fn copied(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (from, to) = (any(target, rng)?, any(target, rng)?);
    let (source, place) = (range(target, from), range(target, to).start);
    target.files.main.copy_within(source, place);
    (from != to).then(|| format!("page {from} is at {to}, too"))
}

fn torn(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (from, to) = (any(target, rng)?, any(target, rng)?);
    let half = target.files.page_size() / 2;
    let (source, place) = (range(target, from), range(target, to).start + half);
    target.files.main.copy_within(source.start + half..source.end, place);
    (from != to).then(|| format!("page {to} ends as page {from}"))
}

fn foreign(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let page = any(target, rng)?;
    let size = target.files.page_size();
    let other = target.others.iter().find(|other| other.files.page_size() == size)?;
    let from = rng.random_range(0..other.files.pages().max(1));
    let theirs = other.files.main.get(from * size..(from + 1) * size)?.to_vec();
    target.files.page_mut(page)?.copy_from_slice(&theirs);
    Some(format!("page {page} is the other's page {}", from + 1))
}

fn removed(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let page = any(target, rng)?;
    let size = target.files.page_size();
    target.files.main.drain((page - 1) * size..page * size);
    Some(format!("page {page}"))
}

fn inserted(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let page = any(target, rng)?;
    let at = (page - 1) * target.files.page_size();
    let mut new = vec![0; target.files.page_size()];
    rng.fill_bytes(&mut new);
    target.files.main.splice(at..at, new);
    Some(format!("before page {page}"))
}
