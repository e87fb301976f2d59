//! Rows of parameters, and statements with theirs, that come as numbers and one text.
//!
//! Owns: reading the form that `flatwater/values/plain.ts` writes. Runs on the loop's thread. Invariant: no code of JavaScript runs while it
//! reads. Leaves out: which rows come in this form.

use flatwater::ValueRef;
use flatwater::bindings::{ParamRows, add_values, rows_of_next};

use crate::capi::function::Call;
use crate::capi::value::{Result, Value};
use crate::handles::{Handle, ManyOf};
use crate::host::Host;
use crate::params::number;

const NULL: u8 = 0;
const BOOLEAN: u8 = 2;
const TEXT: u8 = 3;
const SAME: f64 = -1.0;

/// `addPlain(many, numbers, count, text)`
pub(crate) fn add<'e>(call: &Call<'e, Host>) -> Result<Value<'e>> {
    let (env, count, text) = (call.env, call.number::<2>()? as usize, call.text::<3>()?);
    let number = call.number::<0>()?;
    env.with_numbers(call.argument::<1>(), |numbers| {
        let mut given = Given { numbers, texts: Texts::of(&text) };
        let mut handle = call.host.handles.get(number);
        let Some(Handle::Many(many)) = handle.as_deref_mut() else { return };
        match &mut many.of {
            ManyOf::Rows { rows, .. } => (0..count).for_each(|_| given.row(rows)),
            ManyOf::Statements(all) => {
                // The first has its text here: `SAME` is of a statement of this call.
                let mut sql = "";
                for _ in 0..count {
                    let end = given.number();
                    if end != SAME {
                        sql = given.texts.until(end as usize);
                    }
                    given.row(rows_of_next(all, sql));
                }
            }
            ManyOf::Taken => {}
        }
    })?;
    env.number(count as f64)
}

/// What is left of the numbers and the text.
struct Given<'a> {
    numbers: &'a [f64],
    texts: Texts<'a>,
}

impl<'a> Given<'a> {
    fn number(&mut self) -> f64 {
        self.numbers.split_off_first().copied().unwrap_or(0.0)
    }

    fn value(&mut self) -> ValueRef<'a> {
        match (self.number() as u8, self.number()) {
            (NULL, _) => ValueRef::Null,
            (BOOLEAN, value) => ValueRef::Integer(value as i64),
            (TEXT, end) => ValueRef::Text(self.texts.until(end as usize).as_bytes()),
            (_, value) => number(value),
        }
    }

    fn row(&mut self, rows: &mut ParamRows) {
        let width = self.number() as usize;
        add_values(rows, width, (0..width).map(|_| self.value()));
    }
}

/// Texts one after the other, whose ends count units of UTF-16.
struct Texts<'a> {
    rest: &'a str,
    /// The end of the last one.
    end: usize,
    is_ascii: bool,
}

impl<'a> Texts<'a> {
    fn of(all: &'a str) -> Self {
        Self { rest: all, end: 0, is_ascii: all.is_ascii() }
    }

    /// The next one, up to this end.
    fn until(&mut self, end: usize) -> &'a str {
        let units = end.saturating_sub(self.end);
        self.end = end;
        let bytes = if self.is_ascii { units } else { bytes_of(self.rest, units) };
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }
}

/// How many bytes so many units take.
fn bytes_of(text: &str, units: usize) -> usize {
    let mut left = units;
    let taken = text.chars().take_while(|character| {
        let is_within = left > 0;
        left = left.saturating_sub(character.len_utf16());
        is_within
    });
    taken.map(char::len_utf8).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_units_of_utf_16_say() {
        let parts = ["", "ascii", "\u{e4}\u{20ac}", "", "\u{1f600}a", "\u{1f600}"];
        for parts in [&parts[..2], &parts[..]] {
            let all = parts.concat();
            let mut texts = Texts::of(&all);
            let mut end = 0;
            for part in parts {
                end += part.encode_utf16().count();
                assert_eq!(texts.until(end), *part);
            }
            assert_eq!(texts.until(end + 1), "", "beyond the end there is nothing");
        }
    }
}
