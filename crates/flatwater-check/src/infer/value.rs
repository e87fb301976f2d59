//! What is known of a value that a register of a program may hold.
//!
//! Owns: the value, and what is known of one that comes from either of two places. Invariant: `or` never says more than both. Leaves
//! out: instructions (`step`).

use std::sync::Arc;

use crate::kind::Classes;
use crate::table_column::TableColumn;

/// What is known of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    /// Whether it may be NULL.
    pub(crate) null: bool,
    /// The storage classes that it may have otherwise.
    pub(crate) classes: Classes,
    /// Whether it can have no other class. False if a column that is not STRICT holds it, or a sum may overflow.
    pub(crate) certain: bool,
    /// The column of a table whose value it is, unchanged.
    pub(crate) column: Option<Arc<TableColumn>>,
    /// The parameter whose value it may be, unchanged; the first of several.
    pub(crate) parameter: Option<usize>,
    /// The number that an instruction has put there.
    pub(crate) constant: Option<i32>,
    /// The values of a record.
    pub(crate) record: Option<Arc<[Value]>>,
}

impl Value {
    pub(crate) const ANY: Self = Self {
        null: true,
        classes: Classes::ALL,
        certain: true,
        column: None,
        parameter: None,
        constant: None,
        record: None,
    };
    pub(crate) const NULL: Self = Self { classes: Classes::NONE, ..Self::ANY };
    pub(crate) const INTEGER: Self = Self::of(Classes::INTEGER, false);

    /// Of a value that no run has put there.
    pub(crate) const NOTHING: Self = Self { null: false, ..Self::NULL };

    pub(crate) fn record(values: Arc<[Self]>) -> Self {
        Self { record: Some(values), ..Self::of(Classes::BLOB, false) }
    }

    /// Of a column of a table.
    pub(crate) fn of_column(column: &Arc<TableColumn>) -> Self {
        Self {
            null: !column.not_null,
            classes: column.kind.classes(),
            certain: column.certain,
            column: Some(column.clone()),
            ..Self::ANY
        }
    }

    /// Of a number, if it is known.
    pub(crate) fn constant(constant: Option<i32>) -> Self {
        Self { constant, ..Self::INTEGER }
    }

    pub(crate) const fn of(classes: Classes, null: bool) -> Self {
        Self { null, classes, ..Self::ANY }
    }

    /// Of a value that is one or the other.
    pub(crate) fn or(&self, other: &Self) -> Self {
        if self == other || *other == Self::NOTHING {
            return self.clone();
        }
        if *self == Self::NOTHING {
            return other.clone();
        }
        let record = match (&self.record, &other.record) {
            (Some(one), Some(other)) => Some(records(one, other)),
            _ => None,
        };
        // A NULL is of every column.
        let column = match (&self.column, &other.column) {
            (Some(one), Some(other)) if one == other => Some(one.clone()),
            (Some(one), None) if other.classes == Classes::NONE => Some(one.clone()),
            (None, Some(other)) if self.classes == Classes::NONE => Some(other.clone()),
            _ => None,
        };
        Self {
            null: self.null || other.null,
            classes: self.classes.or(other.classes),
            certain: self.certain && other.certain,
            column,
            parameter: self.parameter.into_iter().chain(other.parameter).min(),
            constant: self.constant.filter(|constant| other.constant == Some(*constant)),
            record,
        }
    }

    pub(crate) fn nullable(self) -> Self {
        Self { null: true, ..self }
    }

    pub(crate) fn not_null(self) -> Self {
        Self { null: false, ..self }
    }

    /// Whether it is a number that is not infinite, or NULL.
    pub(crate) fn is_finite(&self) -> bool {
        self.certain && self.classes.within(Classes::INTEGER)
    }

    /// The value after SQLite has applied an affinity to it, by its letter in a program.
    pub(crate) fn with_affinity(self, letter: u8) -> Self {
        let numbers = Classes::NUMBER;
        let classes = match letter {
            b'B' if self.classes.has(numbers) => self.classes.without(numbers).or(Classes::TEXT),
            b'C' | b'D' | b'F' if self.classes.has(Classes::TEXT) => self.classes.or(numbers),
            b'C' | b'D' | b'F' if self.classes.has(Classes::REAL) => self.classes.or(Classes::INTEGER),
            b'E' if self.classes.has(Classes::TEXT.or(Classes::INTEGER)) => {
                self.classes.without(Classes::INTEGER).or(Classes::REAL)
            }
            _ => return self,
        };
        // A column that is not certain has the class that its declared type says, as far as one can tell.
        if !self.certain || classes == self.classes {
            return self;
        }
        Self { classes, column: None, constant: None, ..self }
    }
}

/// What is known of two records: a column that one does not have is NULL there.
pub(crate) fn records(one: &[Value], other: &[Value]) -> Arc<[Value]> {
    let at = |record: &[Value], at: usize| record.get(at).cloned().unwrap_or(Value::NULL);
    (0..one.len().max(other.len())).map(|column| at(one, column).or(&at(other, column))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_of_two_is_known_as_far_as_both_are() {
        let text = Value::of(Classes::TEXT, false);
        let either = Value::INTEGER.or(&text);
        assert_eq!((either.null, either.classes), (false, Classes::INTEGER.or(Classes::TEXT)));
        assert!(text.or(&Value::NULL).null && text.or(&Value::NULL).classes == Classes::TEXT);
        let short: Arc<[Value]> = [text.clone()].into();
        let long: Arc<[Value]> = [text.clone(), text.clone()].into();
        assert!(records(&short, &long)[1].null && !records(&short, &long)[0].null);
    }

    #[test]
    fn an_affinity_changes_classes_as_sqlite_does() {
        assert_eq!(Value::INTEGER.with_affinity(b'B').classes, Classes::TEXT);
        assert_eq!(Value::INTEGER.with_affinity(b'E').classes, Classes::REAL);
        assert_eq!(Value::of(Classes::REAL, false).with_affinity(b'D').classes, Classes::NUMBER);
        assert_eq!(Value::INTEGER.with_affinity(b'D'), Value::INTEGER);
        assert_eq!(Value::of(Classes::TEXT, true).with_affinity(b'C').classes, Classes::NUMBER.or(Classes::TEXT));
    }
}
