//! Parameters as they are given on the command line.
//!
//! Owns: which value a text is, and which of the values a statement gets. Pure. Invariants: a text is a number only if the number is
//! written as the text, so that `007` and `1e3` stay texts; a value that no statement uses is an error before anything runs. Leaves
//! out: values of other types, which are written in the SQL.

use flatwater::bindings::parameter_names;
use flatwater::{Params, Value};

use super::statements::statements;
use crate::failure::{Failure, Outcome};

/// The values of a command: those by position, or those by name.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    positional: Vec<Value>,
    named: Vec<(String, Value)>,
}

/// Returns the value that a text of the command line is.
pub(crate) fn value(text: &str) -> Value {
    if let Ok(number) = text.parse::<i64>()
        && number.to_string() == text
    {
        return Value::Integer(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && zmij::Buffer::new().format(number) == text => Value::Real(number),
        _ => Value::Text(text.to_owned()),
    }
}

/// Reads `name=value`, for clap. The sign before the name may be left out.
pub(crate) fn named(text: &str) -> Result<(String, Value), String> {
    let (name, given) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let name = name.strip_prefix([':', '@', '$']).unwrap_or(name);
    if name.is_empty() { Err("the name is empty".to_owned()) } else { Ok((name.to_owned(), value(given))) }
}

impl Parameters {
    /// Returns the values for the statements of a text.
    pub(crate) fn new(positional: &[String], named: &[(String, Value)], text: &str) -> Outcome<Self> {
        let positional: Vec<Value> = positional.iter().map(|text| value(text)).collect();
        if !positional.is_empty() && (!named.is_empty() || statements(text).nth(1).is_some()) {
            let message = "values by position are for one statement: give them by name, with --param NAME=VALUE";
            return Err(Failure::Usage(message.to_owned()));
        }
        let is_used = |name: &str| parameter_names(text).any(|used| used == name);
        if let Some((name, _)) = named.iter().find(|(name, _)| !is_used(name)) {
            return Err(Failure::Usage(format!("no statement has a parameter {name}")));
        }
        Ok(Self { positional, named: named.to_vec() })
    }

    /// Returns those of a statement.
    pub(crate) fn of(&self, sql: &str) -> Outcome<Params> {
        if !self.positional.is_empty() {
            return Ok(Params::positional(self.positional.iter().cloned())?);
        }
        let mut used: Vec<(&str, Value)> = Vec::new();
        for (name, value) in &self.named {
            if parameter_names(sql).any(|of_statement| of_statement == name) {
                used.push((name, value.clone()));
            }
        }
        Ok(if used.is_empty() { Params::default() } else { Params::named(used)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_number_only_if_it_is_written_as_one() {
        assert_eq!(value("12"), Value::Integer(12));
        assert_eq!(value("-0.5"), Value::Real(-0.5));
        for text in ["007", "1.50", "+1", "inf", "NaN", "99999999999999999999", "", " 1"] {
            assert_eq!(value(text), Value::Text(text.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_statement_gets_the_names_that_it_has() {
        let named = [named(":a=1").unwrap(), named("b=x=y").unwrap()];
        let all = Parameters::new(&[], &named, "SELECT :a; SELECT $b").unwrap();
        assert_eq!(all.of("SELECT :a").unwrap(), Params::named([("a", 1)]).unwrap());
        assert_eq!(all.of("SELECT $b").unwrap(), Params::named([("b", "x=y")]).unwrap());
        assert_eq!(all.of("SELECT 1").unwrap(), Params::default());
        assert!(Parameters::new(&[], &named, "SELECT :a").is_err(), "b is used by none");
    }

    #[test]
    fn values_by_position_are_for_one_statement() {
        let values = ["1".to_owned()];
        assert!(Parameters::new(&values, &[], "SELECT ?; SELECT 2").is_err());
        let one = Parameters::new(&values, &[], "SELECT ?;").unwrap();
        assert_eq!(one.of("SELECT ?").unwrap(), Params::positional([1]).unwrap());
    }
}
