//! What an error says to do.
//!
//! Owns: the hint, and the sentences that name something of the API, of which the names are parts. Pure, on any thread.
//! Invariant: a sentence is a constant, and its text in Rust too, so that a hint costs nothing. Leaves out: the names
//! (`names`), and which error has which hint.

use std::borrow::Cow;

use super::names::Name;

/// What an error says to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It names nothing of the API.
    Plain(Cow<'static, str>),
    Sentence(&'static Sentence),
}

/// A hint that may name something of the API. Made by `hint!`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sentence {
    rust: &'static str,
    parts: &'static [Part],
}

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Said(&'static str),
    Name(Name),
}

/// Makes a sentence of texts and names: `hint!["set " BusyTimeout " higher"]`.
macro_rules! hint {
    ($($part:tt)*) => {{
        use $crate::error::hint::{Part, Sentence, joined, length};
        const PARTS: &[Part] = &[$($crate::error::hint::hint_part!($part)),*];
        const RUST: &[u8] = &joined::<{ length(PARTS) }>(PARTS);
        const SENTENCE: Sentence = Sentence::new(PARTS, RUST);
        &SENTENCE
    }};
}

macro_rules! hint_part {
    ($said:literal) => {
        $crate::error::hint::Part::Said($said)
    };
    ($name:ident) => {
        $crate::error::hint::Part::Name($crate::error::names::Name::$name)
    };
}

pub(crate) use {hint, hint_part};

impl Part {
    /// Returns the part as it is for Rust.
    const fn rust(&self) -> &'static str {
        match self {
            Self::Said(said) => said,
            Self::Name(name) => name.rust(),
        }
    }
}

/// Returns the number of bytes of a sentence in Rust.
pub(crate) const fn length(parts: &[Part]) -> usize {
    let (mut length, mut part) = (0, 0);
    while part < parts.len() {
        length += parts[part].rust().len();
        part += 1;
    }
    length
}

/// Returns the bytes of a sentence in Rust, of which there are so many.
pub(crate) const fn joined<const LENGTH: usize>(parts: &[Part]) -> [u8; LENGTH] {
    let mut joined = [0; LENGTH];
    let (mut end, mut part) = (0, 0);
    while part < parts.len() {
        let (text, mut at) = (parts[part].rust().as_bytes(), 0);
        while at < text.len() {
            joined[end] = text[at];
            (end, at) = (end + 1, at + 1);
        }
        part += 1;
    }
    joined
}

impl Sentence {
    pub(crate) const fn new(parts: &'static [Part], rust: &'static [u8]) -> Self {
        match std::str::from_utf8(rust) {
            Ok(rust) => Self { rust, parts },
            Err(_) => panic!("texts are UTF-8"),
        }
    }
}

impl Hint {
    /// Returns the hint as it is for Rust.
    pub(crate) fn rust(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Sentence(sentence) => sentence.rust,
        }
    }

    /// Returns the hint with the names as `spell` has them.
    pub(crate) fn spelled(&self, spell: impl Fn(Name) -> &'static str) -> Cow<'_, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Sentence(sentence) => sentence
                .parts
                .iter()
                .map(|part| match part {
                    Part::Said(said) => *said,
                    Part::Name(name) => spell(*name),
                })
                .collect::<String>()
                .into(),
        }
    }
}

impl From<&'static Sentence> for Hint {
    fn from(sentence: &'static Sentence) -> Self {
        Self::Sentence(sentence)
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self::Plain(text.into())
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Plain(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_its_names_in_every_language() {
        let hint = Hint::from(hint!["set " BusyTimeout " higher, or use " ExecuteScript]);
        assert_eq!(hint.rust(), "set `Options::busy_timeout` higher, or use `execute_script`");
        let other = hint.spelled(|name| if name == Name::BusyTimeout { "busyTimeout" } else { "executeScript" });
        assert_eq!(other, "set busyTimeout higher, or use executeScript");
        assert_eq!(Hint::from("no such table").spelled(|_| "?"), "no such table");
    }

    #[test]
    fn rust_spells_the_parts_of_a_sentence_as_its_text_has_them() {
        let sentence = hint!["take " Changes " of the result of " Execute ", or RETURNING"];
        assert_eq!(sentence.rust, "take `changes` of the result of `execute`, or RETURNING");
        assert_eq!(Hint::from(sentence).spelled(Name::rust), sentence.rust);
    }
}
