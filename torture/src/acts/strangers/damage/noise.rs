//! Random bits and bytes at random places, as from a bad disk or cable.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

use super::{Damage, Target};

pub(super) const ALL: &[Damage] = &[
    Damage { name: "bits flipped", inflict: bits },
    Damage { name: "bytes overwritten", inflict: bytes },
    Damage { name: "a sector of noise", inflict: sector },
    Damage { name: "a sector of zeros", inflict: zeros },
    Damage { name: "the -shm is garbage", inflict: shm },
];

fn bits(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let main = &mut target.files.main;
    let count = [1, 3, 20][rng.random_range(0..3)];
    let mut detail = Vec::new();
    for _ in 0..count {
        let (at, bit) = (rng.random_range(0..main.len().max(1)), rng.random_range(0..8));
        *main.get_mut(at)? ^= 1 << bit;
        detail.push(format!("byte {at} bit {bit}"));
    }
    Some(detail.join(", "))
}

fn bytes(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let main = &mut target.files.main;
    let mut detail = Vec::new();
    for _ in 0..rng.random_range(1..8) {
        let (at, new) = (rng.random_range(0..main.len().max(1)), [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5)]);
        *main.get_mut(at)? = new;
        detail.push(format!("byte {at} = {new}"));
    }
    Some(detail.join(", "))
}

/// Returns 512 bytes at a random place.
fn piece<'a>(target: &'a mut Target<'_>, rng: &mut StdRng) -> Option<(usize, &'a mut [u8])> {
    let at = rng.random_range(0..target.files.main.len() / 512 + 1) * 512;
    Some((at, target.files.main.get_mut(at..at + 512)?))
}

fn sector(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (at, piece) = piece(target, rng)?;
    rng.fill_bytes(piece);
    Some(format!("at byte {at}"))
}

fn zeros(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let (at, piece) = piece(target, rng)?;
    piece.fill(0);
    Some(format!("at byte {at}"))
}

fn shm(target: &mut Target<'_>, rng: &mut StdRng) -> Option<String> {
    let mut garbage = vec![0; [0, 1, 136, 32768, 40000][rng.random_range(0..5)]];
    rng.fill_bytes(&mut garbage);
    let detail = format!("{} bytes", garbage.len());
    target.files.shm = Some(garbage);
    Some(detail)
}
