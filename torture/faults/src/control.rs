//! The protocol with the program, which opens paths below `/flatwater-torture`. Such an open always fails.
//!
//! - `arm/KINDS/FILES/EFFECT/WHEN/STEP/MOST/SEED`, all numbers: sets the plan.
//! - `disarm`: removes the plan, so all calls are made.
//! - `met`, `syncs`: how many calls had another fate than to be made, were failed syncs. The answer is the error number
//!   less 1,000,000, so that a program without this library, which sees "not found", can tell.

use std::ffi::CStr;

use crate::plan;

const ANSWER: i32 = 1_000_000;
const MOST: u64 = 1_000_000_000;

/// Returns the error number of such an open; `None` for every other path.
pub(crate) fn answer(path: &CStr) -> Option<i32> {
    let rest = path.to_bytes().strip_prefix(b"/flatwater-torture/")?;
    let number = match rest {
        b"met" => plan::met(),
        b"syncs" => plan::syncs_failed(),
        b"disarm" => {
            plan::disarm();
            0
        }
        _ => {
            let Some(words) = rest.strip_prefix(b"arm/").and_then(words) else { return Some(libc::EINVAL) };
            plan::arm(words);
            0
        }
    };
    Some(ANSWER + i32::try_from(number.min(MOST)).unwrap_or(0))
}

fn words(text: &[u8]) -> Option<[u64; 7]> {
    let mut words = [0_u64; 7];
    let mut at = 0;
    for byte in text {
        match byte {
            b'/' => at += 1,
            b'0'..=b'9' => {
                let word = words.get_mut(at)?;
                *word = word.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
            }
            _ => return None,
        }
    }
    (at + 1 == words.len()).then_some(words)
}
