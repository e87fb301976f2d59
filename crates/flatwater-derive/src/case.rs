//! The cases of names, as serde spells them and converts to them, so that a type has the same names in JSON and in a
//! database.
//!
//! Owns: the conversion. Pure. Invariant: a field is given in snake_case and a variant in PascalCase. Leaves out: names
//! that are given in full.

/// A case, by serde's name for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

/// Every case with its name.
pub(crate) const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// Converts the name of a field.
    pub(crate) fn of_field(self, field: &str) -> String {
        match self {
            Self::Lower | Self::Snake => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(field),
            Self::Camel => first_in_lower_case(&pascal(field)),
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// Converts the name of a variant.
    pub(crate) fn of_variant(self, variant: &str) -> String {
        match self {
            Self::Pascal => variant.to_owned(),
            Self::Lower => variant.to_ascii_lowercase(),
            Self::Upper => variant.to_ascii_uppercase(),
            Self::Camel => first_in_lower_case(variant),
            Self::Snake => snake(variant),
            Self::ScreamingSnake => snake(variant).to_ascii_uppercase(),
            Self::Kebab => snake(variant).replace('_', "-"),
            Self::ScreamingKebab => snake(variant).to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn pascal(field: &str) -> String {
    let mut name = String::new();
    let mut begins = true;
    for c in field.chars() {
        if c == '_' {
            begins = true;
        } else {
            name.push(if begins { c.to_ascii_uppercase() } else { c });
            begins = false;
        }
    }
    name
}

fn snake(variant: &str) -> String {
    let mut name = String::new();
    for (at, c) in variant.char_indices() {
        if at > 0 && c.is_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

fn first_in_lower_case(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_serde_makes_of_them() {
        let field = CASES.map(|(_, case)| case.of_field("very_tasty1"));
        let variant = CASES.map(|(_, case)| case.of_variant("VeryTasty1"));
        let expected = [
            "very_tasty1",
            "VERY_TASTY1",
            "VeryTasty1",
            "veryTasty1",
            "very_tasty1",
            "VERY_TASTY1",
            "very-tasty1",
            "VERY-TASTY1",
        ];
        assert_eq!(field, expected);
        assert_eq!(variant[2..], expected[2..]);
        assert_eq!(variant[..2], ["verytasty1", "VERYTASTY1"]);
    }
}
