//! Texts that are JSON themselves, and become part of a document. Pure.
//!
//! Owns: the check of such a text. Invariant: a document in which a checked text stands for a value is JSON that
//! `serde_json` reads, whatever the text. Leaves out: copying the text.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// How deep values may be nested in a text. Parsers commonly stop at 128, and an array and a row surround the text.
const LEVELS: u8 = 125;

/// Returns true if the text is one JSON value.
pub(super) fn is_json(text: &str) -> bool {
    let mut parser = serde_json::Deserializer::from_str(text);
    Value { levels: LEVELS }.deserialize(&mut parser).and_then(|()| parser.end()).is_ok()
}

/// Reads a value and drops it. Unlike `IgnoredAny` it reads strings and numbers too, of which some are written by the
/// grammar of JSON and cannot be read: half of a surrogate pair, `1e999`.
struct Value {
    /// How many levels may follow.
    levels: u8,
}

impl Value {
    fn inner<E: Error>(&self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1).ok_or_else(|| E::custom("too many levels"))?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Value {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Methods that read what has no values in it.
macro_rules! read_and_dropped {
    ($($visit:ident $(: $of:ty)?),+) => {$(
        fn $visit<E>(self $(, _: $of)?) -> Result<(), E> {
            Ok(())
        }
    )+};
}

impl<'de> Visitor<'de> for Value {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    read_and_dropped! { visit_unit, visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element_seed(self.inner()?)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while entries.next_key::<IgnoredAny>()?.is_some() {
            entries.next_value_seed(self.inner()?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_read(text: &str) -> bool {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }

    proptest! {
        /// Pieces of JSON in any order, most of them no JSON.
        #[test]
        fn exactly_what_serde_json_reads_is_accepted(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "[", "]", "{", "}", ",", ":", " ", "\n", "\"", "\"a\"", "\"a\":", "\\", "\"\\u", "d83d", "\\ude00\"", "1", "-", "0", ".",
                "e5", "e999", "null", "true", "fals", "'", "/", "\u{0}", "é",
            ]), 0..8)
        ) {
            let text = pieces.concat();
            let in_a_document = format!("[{{\"embedded\":{text}}}]");
            prop_assert_eq!(is_json(&text), is_read(&text));
            prop_assert!(!is_json(&text) || is_read(&in_a_document), "{:?}", text);
        }
    }

    #[test]
    fn what_is_accepted_can_be_read_in_a_document() {
        let deepest = format!("{}1{}", "[".repeat(125), "]".repeat(125));
        let values =
            ["1", "-0.0", "null", "true", "\"a\\u00e9\\ud83d\\ude00\"", " [1, {\"a\": []}]\n", "{\"a\":1,\"a\":2}"];
        for text in values.into_iter().chain([&*deepest]) {
            assert!(is_json(text), "{text}");
            let document = format!("[{{\"embedded\":{text}}}]");
            serde_json::from_str::<serde_json::Value>(&document).unwrap();
        }
    }

    #[test]
    fn what_would_break_a_document_is_refused() {
        let too_deep = format!("{}1{}", "[".repeat(126), "]".repeat(126));
        let deepest = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let texts = [
            "",
            " ",
            "1}, {\"admin\": true",
            "1, 2",
            "1 2",
            "[1",
            "[1,]",
            "{a: 1}",
            "{\"a\" 1}",
            "'a'",
            "+1",
            "01",
            ".5",
            "1.",
            "0x10",
            "NaN",
            "Infinity",
            "1e999",
            "nul",
            "\"a",
            "\"a\nb\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "{\"\\udc00\": 1}",
            "[1] // comment",
            "/**/1",
            "\u{feff}1",
            "1\0",
            "\"\0\"",
        ];
        for text in texts.into_iter().chain([&*too_deep, &*deepest]) {
            assert!(!is_json(text), "{text:.40}");
        }
    }
}
