//! Storage classes, declared types, and the kind of a value that a language has a type for.
//!
//! Owns: what a declared type tells of the values of a column. Invariant: of a column that is not STRICT a declared type tells what
//! its values should be, and no more; who reads them must be ready for others. Leaves out: expressions (`infer`).

/// A set of storage classes, without NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Classes(u8);

impl Classes {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const INTEGER: Self = Self(1);
    pub(crate) const REAL: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(3);
    pub(crate) const TEXT: Self = Self(4);
    pub(crate) const BLOB: Self = Self(8);
    pub(crate) const ALL: Self = Self(15);

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no value has a class that is not in `other`.
    pub(crate) fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// What a value is, as far as a type of a language can say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// 64 bits, with a sign.
    Integer,
    /// A floating point number.
    Real,
    /// Either of both.
    Number,
    /// UTF-8.
    Text,
    /// Bytes.
    Blob,
    /// 0 or 1, of a column that was declared so. So are the following.
    Boolean,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// A moment.
    DateTime,
    /// JSON as text.
    Json,
    /// A UUID.
    Uuid,
    /// A decimal number.
    Decimal,
    /// Values of several classes, or not known.
    Any,
}

impl Kind {
    pub(crate) fn of(classes: Classes) -> Self {
        match classes {
            Classes::INTEGER => Self::Integer,
            Classes::REAL => Self::Real,
            Classes::NUMBER => Self::Number,
            Classes::TEXT => Self::Text,
            Classes::BLOB => Self::Blob,
            _ => Self::Any,
        }
    }

    /// Its name, as `flatwater.toml` and messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Number => "NUMBER",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
            Self::Boolean => "BOOLEAN",
            Self::Date => "DATE",
            Self::Time => "TIME",
            Self::DateTime => "DATETIME",
            Self::Json => "JSON",
            Self::Uuid => "UUID",
            Self::Decimal => "DECIMAL",
            Self::Any => "ANY",
        }
    }

    /// The kind with this name, for the declaration of a function.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Integer, Self::Real, Self::Number, Self::Text, Self::Blob, Self::Any];
        all.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// The storage classes that a value of this kind may have.
    pub(crate) fn classes(self) -> Classes {
        match self {
            Self::Integer | Self::Boolean => Classes::INTEGER,
            Self::Real => Classes::REAL,
            Self::Number => Classes::NUMBER,
            Self::Text | Self::Date | Self::Time | Self::DateTime | Self::Json => Classes::TEXT,
            Self::Blob => Classes::BLOB,
            Self::Uuid => Classes::TEXT.or(Classes::BLOB),
            Self::Decimal => Classes::NUMBER.or(Classes::TEXT),
            Self::Any => Classes::ALL,
        }
    }
}

/// What the declared type of a column that is not STRICT says its values are: its meaning by its first word, else its affinity
/// (<https://sqlite.org/datatype3.html#determination_of_column_affinity>).
pub(crate) fn declared(name: &str) -> Kind {
    let upper = name.to_ascii_uppercase();
    let has = |part: &str| upper.contains(part);
    match upper.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default() {
        "BOOLEAN" | "BOOL" => Kind::Boolean,
        "DATE" => Kind::Date,
        "TIME" => Kind::Time,
        "DATETIME" | "TIMESTAMP" | "TIMESTAMPTZ" => Kind::DateTime,
        "JSON" => Kind::Json,
        "UUID" => Kind::Uuid,
        "DECIMAL" | "NUMERIC" => Kind::Decimal,
        _ if has("INT") => Kind::Integer,
        _ if has("CHAR") || has("CLOB") || has("TEXT") => Kind::Text,
        _ if has("BLOB") => Kind::Blob,
        _ if has("REAL") || has("FLOA") || has("DOUB") => Kind::Real,
        _ => Kind::Any,
    }
}

/// What the declared type of a column of a STRICT table says (<https://sqlite.org/stricttables.html>).
pub(crate) fn strict(name: &str) -> Kind {
    match &*name.to_ascii_uppercase() {
        "INT" | "INTEGER" => Kind::Integer,
        "REAL" => Kind::Real,
        "TEXT" => Kind::Text,
        "BLOB" => Kind::Blob,
        _ => Kind::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_read_by_its_first_word_and_else_by_its_affinity() {
        for (name, kind) in [
            ("bool", Kind::Boolean),
            ("timestamp with time zone", Kind::DateTime),
            ("DECIMAL(10,2)", Kind::Decimal),
            ("decimal_text", Kind::Text),
            ("BIGINT UNSIGNED", Kind::Integer),
            ("varchar(20)", Kind::Text),
            ("double precision", Kind::Real),
            ("STRING", Kind::Any),
            ("", Kind::Any),
        ] {
            assert_eq!(declared(name), kind, "{name}");
        }
    }

    #[test]
    fn a_set_of_classes_has_the_kind_that_holds_them() {
        assert_eq!(Kind::of(Classes::INTEGER.or(Classes::REAL)), Kind::Number);
        assert_eq!(Kind::of(Classes::TEXT.or(Classes::BLOB)), Kind::Any);
        assert_eq!(Kind::of(Classes::ALL.without(Classes::NUMBER.or(Classes::BLOB))), Kind::Text);
        assert_eq!(Kind::named("text"), Some(Kind::Text));
    }
}
