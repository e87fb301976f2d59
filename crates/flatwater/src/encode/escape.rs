//! JSON strings. Pure.
//!
//! Owns: which bytes of a text need an escape, and what stands for them. Invariant: the result is what `serde_json`
//! writes. Leaves out: the rest of a document (`json`).

/// The bytes that are looked at together.
const CHUNK: usize = 16;

/// Writes the text as a JSON string. Parts that need no escape are copied as they are.
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_special(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        push_escape(out, from.as_bytes()[0]);
        rest = &from[1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Returns the position of the first byte that needs an escape.
fn first_special(bytes: &[u8]) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks::<CHUNK>();
    // Without an early end, so that the compiler compares all bytes of a chunk at once.
    let is_plain = |chunk: &&[u8; CHUNK]| !chunk.iter().fold(false, |found, byte| found | is_special(*byte));
    let plain = chunks.iter().take_while(is_plain).count() * CHUNK;
    bytes[plain..].iter().position(|byte| is_special(*byte)).map(|at| plain + at)
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn push_escape(out: &mut String, byte: u8) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        control => {
            let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
            out.push_str("\\u00");
            out.push(digit(control >> 4));
            return out.push(digit(control & 0xf));
        }
    };
    out.push('\\');
    out.push(char::from(letter));
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_text_is_as_serde_json_writes_it(text in ".{0,80}|[\\x00-\\x7f]{0,80}") {
            assert_eq!(string(&text), serde_json::to_string(&text).unwrap());
        }
    }

    fn string(text: &str) -> String {
        let mut out = String::new();
        push_string(&mut out, text);
        out
    }

    #[test]
    fn every_byte_at_every_place_of_a_chunk_is_as_serde_json_writes_it() {
        let filler = "0123456789abcdefghijklmnopqrstuvwxyz é";
        for special in (0..=0x7f_u8).map(char::from).chain(['\u{80}', '\u{2028}', '\u{fffd}', '😀']) {
            for before in 0..=2 * CHUNK {
                let text = format!("{}{special}{}", &filler[..before], &filler[before..]);
                assert_eq!(string(&text), serde_json::to_string(&text).unwrap());
            }
        }
    }

    #[test]
    fn consecutive_escapes_and_the_empty_text_are_strings() {
        for text in ["", "\"", "\\\\\\\"\"\n\0\u{1f}\u{7f}", "\\u0000\\ud800", "</script>"] {
            assert_eq!(string(text), serde_json::to_string(text).unwrap());
        }
    }
}
