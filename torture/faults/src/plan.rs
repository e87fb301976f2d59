//! The plan: which calls are selected, and what happens to them.
//!
//! Calls of the kinds and on the files that a plan names are counted from 1. The number of a file or kind is the number
//! of a bit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The kind of a call. The numbers are used in plans.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Open,
    Read,
    Write,
    Sync,
    Truncate,
    Map,
    Lock,
    Unlock,
    Close,
    Unlink,
    Thread,
}

const NAMES: [&[u8]; 11] = [
    b"open",
    b"read",
    b"write",
    b"sync",
    b"truncate",
    b"map",
    b"lock",
    b"unlock",
    b"close",
    b"unlink",
    b"start of a thread",
];
const FILES: [&[u8]; 10] = [
    b"main.db",
    b"main.db-wal",
    b"main.db-shm",
    b"main.db-journal",
    b"other.db",
    b"other.db-wal",
    b"other.db-shm",
    b"other.db-journal",
    b"the directory",
    b"the process",
];

/// What happens to a call.
pub(crate) enum Fate {
    /// The call is made unchanged.
    Made,
    /// The call fails with this error number.
    Fails(i32),
    /// The call is made with half of the bytes.
    Short,
    /// The call is made 20 ms later.
    Late,
}

/// Values that a plan uses instead of an error number.
const SHORT: u64 = 1001;
const LATE: u64 = 1002;
/// The maximum number of a plan's calls to print on stderr.
const TOLD: u64 = 100;

static IS_ARMED: AtomicBool = AtomicBool::new(false);
/// Kinds, files, effect, when, step, most, seed: the numbers of the path that sets the plan.
static WORDS: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
/// The number of counted calls, and of those that were not made unchanged.
static COUNTED: AtomicU64 = AtomicU64::new(0);
static MET: AtomicU64 = AtomicU64::new(0);
static SYNCS_FAILED: AtomicU64 = AtomicU64::new(0);

pub(crate) fn arm(words: [u64; 7]) {
    disarm();
    for (place, word) in WORDS.iter().zip(words) {
        place.store(word, Ordering::SeqCst);
    }
    for count in [&COUNTED, &MET, &SYNCS_FAILED] {
        count.store(0, Ordering::SeqCst);
    }
    IS_ARMED.store(true, Ordering::SeqCst);
}

pub(crate) fn disarm() {
    IS_ARMED.store(false, Ordering::SeqCst);
}

pub(crate) fn met() -> u64 {
    MET.load(Ordering::SeqCst)
}

pub(crate) fn syncs_failed() -> u64 {
    SYNCS_FAILED.load(Ordering::SeqCst)
}

/// Returns what happens to a call of this kind on this file.
pub(crate) fn fate(kind: Kind, file: Option<u8>) -> Fate {
    let Some(file) = file.filter(|_| IS_ARMED.load(Ordering::SeqCst)) else { return Fate::Made };
    let [kinds, files, effect, when, step, most, seed] =
        [0, 1, 2, 3, 4, 5, 6].map(|at: usize| WORDS[at].load(Ordering::SeqCst));
    if kinds & (1 << kind as u64) == 0 || files & (1 << file) == 0 {
        return Fate::Made;
    }
    let number = COUNTED.fetch_add(1, Ordering::SeqCst) + 1;
    let step = step.max(1);
    let is_meant = match when {
        0 => number == step,
        1 => number.is_multiple_of(step),
        2 => mixed(seed ^ number).is_multiple_of(step),
        _ => number >= step,
    };
    let less_than_most = |met| (met < most).then_some(met + 1);
    if !is_meant || MET.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less_than_most).is_err() {
        return Fate::Made;
    }
    if met() <= TOLD {
        tell(kind, file, number);
    }
    match effect {
        SHORT => Fate::Short,
        LATE => Fate::Late,
        errno => {
            if matches!(kind, Kind::Sync) {
                SYNCS_FAILED.fetch_add(1, Ordering::SeqCst);
            }
            Fate::Fails(i32::try_from(errno).unwrap_or(libc::EIO))
        }
    }
}

/// Prints a line on stderr, for the history of a finding.
fn tell(kind: Kind, file: u8, number: u64) {
    let mut line = [0; 80];
    let mut length = 0;
    let mut digits = [0; 20];
    for part in
        [b"met: ", NAMES[kind as usize], b" on ", FILES[file as usize], b", call ", decimal(number, &mut digits), b"\n"]
    {
        line[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    crate::system::complain(&line[..length]);
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// The mixing function of splitmix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}
