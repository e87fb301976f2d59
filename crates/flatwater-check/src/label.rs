//! What the name of a result's column says beside the name: `id!: UserId`, `note?`, `total: _`, as sqlx writes it.
//!
//! Owns: reading it. Invariant: a name without a mark is that name, unchanged. Leaves out: what the type means.

/// Whether a column is said to be NULL sometimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nullability {
    /// As it was found.
    Found,
    /// Never NULL: `!`.
    Never,
    /// NULL sometimes: `?`.
    Sometimes,
}

/// The name of a column, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label<'a> {
    /// The name of the field.
    pub name: &'a str,
    /// The mark behind it.
    pub nullability: Nullability,
    /// The type behind the colon; `_` is left to the compiler.
    pub type_name: Option<&'a str>,
}

impl<'a> Label<'a> {
    /// Takes the name of a column apart.
    #[must_use]
    pub fn of(column: &'a str) -> Self {
        let colon = column.match_indices(':').find(|(at, _)| !column[at + 1..].starts_with(':')).map(|(at, _)| at);
        let (name, type_name) = match colon {
            Some(at) if at > 0 => (column[..at].trim(), Some(column[at + 1..].trim())),
            _ => (column, None),
        };
        let (name, nullability) = match (name.strip_suffix('!'), name.strip_suffix('?')) {
            (Some(name), _) => (name, Nullability::Never),
            (_, Some(name)) => (name, Nullability::Sometimes),
            _ => (name, Nullability::Found),
        };
        Self { name, nullability, type_name: type_name.filter(|name| !name.is_empty()) }
    }

    /// Whether the value is to be read as one that may be NULL, if it was found to be so.
    #[must_use]
    pub fn is_nullable(&self, found: bool) -> bool {
        match self.nullability {
            Nullability::Found => found,
            Nullability::Never => false,
            Nullability::Sometimes => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_types_are_read_as_sqlx_writes_them() {
        for (column, name, nullability, type_name) in [
            ("id", "id", Nullability::Found, None),
            ("id!", "id", Nullability::Never, None),
            ("note?", "note", Nullability::Sometimes, None),
            ("id!: UserId", "id", Nullability::Never, Some("UserId")),
            ("at?: chrono::DateTime<Utc>", "at", Nullability::Sometimes, Some("chrono::DateTime<Utc>")),
            ("total: _", "total", Nullability::Found, Some("_")),
            ("count(*)", "count(*)", Nullability::Found, None),
        ] {
            assert_eq!(Label::of(column), Label { name, nullability, type_name }, "{column}");
        }
        assert!(
            Label::of("a").is_nullable(true)
                && !Label::of("a!").is_nullable(true)
                && Label::of("a?").is_nullable(false)
        );
    }
}
