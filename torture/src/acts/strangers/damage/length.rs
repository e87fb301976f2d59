//! Damage to the length: a file that is cut off, empty, continued with other content, or not a database at all.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{Damage, Target};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "cut off anywhere", inflict: cut },
    Damage { name: "cut off between two pages", inflict: cut_between_pages },
    Damage { name: "empty", inflict: empty },
    Damage { name: "garbage at the end", inflict: longer },
    Damage { name: "pages of zeros at the end", inflict: zeros },
    Damage { name: "not a database", inflict: no_database },
    Damage { name: "twice in one file", inflict: twice },
];

fn cut(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let main = &mut target.files.main;
    let length = if rng.random_bool(0.4) { rng.random_range(0..120) } else { rng.random_range(0..main.len().max(1)) };
    main.truncate(length);
    Some(format!("{} bytes", main.len()))
}

fn cut_between_pages(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (pages, size) = (target.files.pages(), target.files.page_size());
    let pages = rng.random_range(0..pages.max(1));
    target.files.main.truncate(pages * size);
    Some(format!("{pages} pages"))
}

fn empty(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    target.files.main.clear();
    Some("0 bytes".into())
}

fn longer(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let mut garbage = vec![0; rng.random_range(1..3 * target.files.page_size())];
    rng.fill_bytes(&mut garbage);
    target.files.main.extend_from_slice(&garbage);
    Some(format!("{} bytes", garbage.len()))
}

fn zeros(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let pages = rng.random_range(1..4);
    let length = target.files.main.len() + pages * target.files.page_size();
    target.files.main.resize(length, 0);
    Some(format!("{pages}"))
}

fn no_database(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let mut noise = vec![0; rng.random_range(1..20_000)];
    match rng.random_range(0..3) {
        0 => noise.fill(b'a'),
        1 => noise.fill(0),
        _ => rng.fill_bytes(&mut noise),
    }
    let detail = format!("{} bytes of {:#x} and so on", noise.len(), noise[0]);
    target.files.main = noise;
    Some(detail)
}

fn twice(target: &mut Target<'_>, _: &mut StdRng) -> Option<String> {
    let again = target.files.main.clone();
    target.files.main.extend_from_slice(&again);
    Some(format!("{} bytes each", again.len()))
}
