//! The values of some rows of one column, as Arrow keeps them. Pure.
//!
//! Owns: their memory. Runs on the thread that adds rows; what is complete is read on any thread. Invariants: all values have
//! one type, and a NULL has a place among them; there is a bit for each row, or no row is NULL. Leaves out: which values
//! belong together (`column`), Arrow's structs (`capi::arrow`).

use flatwater::ValueRef;

/// Values of one type. A NULL has a place among them, of any value.
#[derive(Default)]
pub(crate) enum Values {
    /// There is no value yet: only NULLs.
    #[default]
    Nulls,
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Bytes),
    Blobs(Bytes),
}

/// Texts or blobs, one after the other.
pub(crate) struct Bytes {
    /// Where each begins, and at last where the last one ends.
    pub(crate) ends: Vec<i32>,
    pub(crate) bytes: Vec<u8>,
}

/// The values of some rows.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) values: Values,
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    /// A bit for each row, 1 for a value, 0 for NULL. Empty if all rows have a value.
    pub(crate) valid: Vec<u8>,
}

impl Values {
    /// No values of the type that a column of this declaration prefers: SQLite's affinity.
    /// <https://sqlite.org/datatype3.html#determination_of_column_affinity>
    pub(crate) fn of_declared(declared: &str) -> Self {
        let declared = declared.to_ascii_uppercase();
        let has = |names: &[&str]| names.iter().any(|name| declared.contains(name));
        if has(&["INT"]) {
            Self::Integers(Vec::new())
        } else if has(&["CHAR", "CLOB", "TEXT"]) {
            Self::Texts(Bytes::default())
        } else if has(&["BLOB"]) {
            Self::Blobs(Bytes::default())
        } else if has(&["REAL", "FLOA", "DOUB"]) {
            Self::Reals(Vec::new())
        } else {
            Self::Nulls
        }
    }

    /// No values, of the type of this one.
    pub(crate) fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Nulls,
            ValueRef::Integer(_) => Self::Integers(Vec::new()),
            ValueRef::Real(_) => Self::Reals(Vec::new()),
            ValueRef::Text(_) => Self::Texts(Bytes::default()),
            ValueRef::Blob(_) => Self::Blobs(Bytes::default()),
        }
    }

    /// No values, of the same type, with room for as many.
    pub(crate) fn same(&self) -> Self {
        match self {
            Self::Nulls => Self::Nulls,
            Self::Integers(values) => Self::Integers(Vec::with_capacity(values.len())),
            Self::Reals(values) => Self::Reals(Vec::with_capacity(values.len())),
            Self::Texts(texts) => Self::Texts(texts.same()),
            Self::Blobs(blobs) => Self::Blobs(blobs.same()),
        }
    }

    /// The type that SQLite calls so.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Nulls => "NULL",
            Self::Integers(_) => "INTEGER",
            Self::Reals(_) => "REAL",
            Self::Texts(_) => "TEXT",
            Self::Blobs(_) => "BLOB",
        }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Self { ends: vec![0], bytes: Vec::new() }
    }
}

impl Bytes {
    pub(crate) fn same(&self) -> Self {
        let mut ends = Vec::with_capacity(self.ends.len());
        ends.push(0);
        Self { ends, bytes: Vec::with_capacity(self.bytes.len()) }
    }

    /// Returns false if there is no place for so many bytes.
    #[inline]
    pub(crate) fn push(&mut self, value: &[u8]) -> bool {
        let Ok(end) = i32::try_from(self.bytes.len() + value.len()) else { return false };
        self.bytes.extend_from_slice(value);
        self.ends.push(end);
        true
    }

    /// Adds an empty value, which stands for NULL.
    fn skip(&mut self) {
        self.ends.extend(self.ends.last().copied());
    }

    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let place = |index: usize| usize::try_from(self.ends[index]).unwrap_or(0);
        &self.bytes[place(index)..place(index + 1)]
    }
}

impl Chunk {
    pub(crate) fn null(&mut self) {
        if self.valid.is_empty() {
            // All rows before have a value.
            self.valid = vec![0xff; self.rows / 8];
            self.valid.push(!(0xff << (self.rows % 8)));
        } else if self.rows.is_multiple_of(8) {
            self.valid.push(0);
        }
        self.nulls += 1;
        self.rows += 1;
        match &mut self.values {
            Values::Nulls => {}
            Values::Integers(values) => values.push(0),
            Values::Reals(values) => values.push(0.0),
            Values::Texts(bytes) | Values::Blobs(bytes) => bytes.skip(),
        }
    }

    /// Notes that a value was added.
    #[inline]
    pub(crate) fn added(&mut self) {
        if !self.valid.is_empty() {
            match self.valid.get_mut(self.rows / 8) {
                Some(bits) => *bits |= 1 << (self.rows % 8),
                None => self.valid.push(1),
            }
        }
        self.rows += 1;
    }

    /// Gives it this type. It has only NULLs, or integers that become floats.
    pub(crate) fn convert(&mut self, to: &Values) {
        let rows = self.rows;
        self.values = match (std::mem::take(&mut self.values), to) {
            (Values::Nulls, Values::Integers(_)) => Values::Integers(vec![0; rows]),
            (Values::Nulls, Values::Reals(_)) => Values::Reals(vec![0.0; rows]),
            (Values::Nulls, Values::Texts(_)) => Values::Texts(Bytes { ends: vec![0; rows + 1], bytes: Vec::new() }),
            (Values::Nulls, Values::Blobs(_)) => Values::Blobs(Bytes { ends: vec![0; rows + 1], bytes: Vec::new() }),
            // In place: both have 8 bytes.
            (Values::Integers(all), Values::Reals(_)) => Values::Reals(all.into_iter().map(|one| one as f64).collect()),
            (same, _) => same,
        };
    }

    /// The memory of the values.
    pub(crate) fn bytes(&self) -> usize {
        match &self.values {
            Values::Nulls => 0,
            Values::Integers(values) => size_of_val(&values[..]),
            Values::Reals(values) => size_of_val(&values[..]),
            Values::Texts(bytes) | Values::Blobs(bytes) => size_of_val(&bytes.ends[..]) + bytes.bytes.len(),
        }
    }

    pub(crate) fn get(&self, row: usize) -> ValueRef<'_> {
        let is_null = self.valid.get(row / 8).is_some_and(|bits| bits & (1 << (row % 8)) == 0);
        match &self.values {
            Values::Nulls => ValueRef::Null,
            _ if is_null => ValueRef::Null,
            Values::Integers(values) => ValueRef::Integer(values[row]),
            Values::Reals(values) => ValueRef::Real(values[row]),
            Values::Texts(texts) => ValueRef::Text(texts.get(row)),
            Values::Blobs(blobs) => ValueRef::Blob(blobs.get(row)),
        }
    }
}
