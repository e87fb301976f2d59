//! What an error says to do.
//!
//! Owns: the hint, and the sentences that name something of the API, of which the names are parts. Pure, on any thread.
//! Invariant: a sentence is a constant, and joined where an error needs it. Leaves out: the names (`names`), and which
//! error has which hint.

use std::borrow::Cow;

use super::names::Name;

/// What an error says to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hint {
    rust: Cow<'static, str>,
    /// Of one that names something of the API.
    parts: &'static Sentence,
}

/// A hint that may name something of the API. Made by `hint!`.
pub(crate) type Sentence = [Part];

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Said(&'static str),
    Name(Name),
}

/// Makes a sentence of texts and names: `hint!["set " BusyTimeout " higher"]`.
macro_rules! hint {
    ($($part:tt)*) => {{
        const SENTENCE: &$crate::error::hint::Sentence = &[$($crate::error::hint::hint_part!($part)),*];
        SENTENCE
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

fn joined(parts: &Sentence, spell: impl Fn(Name) -> &'static str) -> String {
    let part = |part: &Part| match part {
        Part::Said(said) => *said,
        Part::Name(name) => spell(*name),
    };
    parts.iter().map(part).collect()
}

impl Hint {
    /// Returns the hint as it is for Rust.
    pub(crate) fn rust(&self) -> &str {
        &self.rust
    }

    /// Returns the hint with the names as `spell` has them.
    pub(crate) fn spelled(&self, spell: impl Fn(Name) -> &'static str) -> Cow<'_, str> {
        if self.parts.is_empty() { Cow::Borrowed(&self.rust) } else { joined(self.parts, spell).into() }
    }
}

impl From<&'static Sentence> for Hint {
    fn from(parts: &'static Sentence) -> Self {
        Self { rust: joined(parts, Name::rust).into(), parts }
    }
}

impl From<&'static str> for Hint {
    fn from(text: &'static str) -> Self {
        Self { rust: text.into(), parts: &[] }
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self { rust: text.into(), parts: &[] }
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
        let hint = Hint::from(sentence);
        assert_eq!(hint.rust(), "take `changes` of the result of `execute`, or RETURNING");
        assert_eq!(hint.spelled(Name::rust), hint.rust());
    }
}
