//! What functions return: SQLite's own, as its manual says it (<https://sqlite.org/lang_corefunc.html>), and those that a program
//! declares.
//!
//! Owns: the table. Invariants: a function that is not in it may return anything; a declared one hides SQLite's of the same name. The
//! number of arguments is that of the declaration, as programs have it, negative for any number: then only the first is known. Leaves
//! out: functions that are instructions, such as `coalesce`.

use super::value::Value;
use crate::declared::Function;
use crate::kind::Classes;

const TEXT: Classes = Classes::TEXT;
const INTEGER: Classes = Classes::INTEGER;
const REAL: Classes = Classes::REAL;

/// A call, as P4 has it: `lower(1)`.
pub(super) fn name(call: &str) -> &str {
    call.split('(').next().unwrap_or(call)
}

fn declared(functions: &[Function], call: &str) -> Option<Value> {
    let function = functions.iter().find(|function| function.name.eq_ignore_ascii_case(name(call)))?;
    Some(Value::of(function.returns.classes(), function.nullable))
}

/// What a call returns, with these values from its first argument on.
pub(super) fn scalar(functions: &[Function], call: &str, arguments: &[Value]) -> Value {
    declared(functions, call).unwrap_or_else(|| own(call, arguments))
}

fn own(call: &str, arguments: &[Value]) -> Value {
    let null = arguments.iter().any(|argument| argument.null);
    let first = || arguments.first().cloned().unwrap_or(Value::ANY);
    let numeric = || first().certain && first().classes.within(Classes::NUMBER);
    match call {
        // NULL for no other reason than an argument.
        "lower(1)" | "upper(1)" | "trim(1)" | "trim(2)" | "ltrim(1)" | "ltrim(2)" | "rtrim(1)" | "rtrim(2)"
        | "replace(3)" | "json(1)" => Value::of(TEXT, null),
        "printf(-1)" | "format(-1)" => Value::of(TEXT, true),
        "length(1)" | "octet_length(1)" | "instr(2)" | "like(2)" | "like(3)" | "glob(2)" | "json_valid(1)" => {
            Value::of(INTEGER, null)
        }
        "substr(2)" | "substr(3)" | "substring(2)" | "substring(3)" => of_same_text(&first(), null),
        "round(1)" | "round(2)" => Value::of(REAL, null),
        "abs(1)" if first().is_finite() => Value::of(INTEGER, null),
        "abs(1)" => Value { certain: first().certain, ..Value::of(number(&first()), null) },
        "sign(1)" => Value::of(INTEGER, null || !numeric()),
        // Never NULL.
        "hex(1)"
        | "quote(1)"
        | "typeof(1)"
        | "char(-1)"
        | "sqlite_version(0)"
        | "sqlite_source_id(0)"
        | "current_date(0)"
        | "current_time(0)"
        | "current_timestamp(0)"
        | "concat(-3)"
        | "json_array(-1)"
        | "json_object(-1)"
        | "json_quote(1)" => Value::of(TEXT, false),
        "random(0)" | "changes(0)" | "total_changes(0)" | "last_insert_rowid(0)" | "subtype(1)" => Value::INTEGER,
        "randomblob(1)" | "zeroblob(1)" => Value::of(Classes::BLOB, false),
        "pi(0)" => Value::of(REAL, false),
        // NULL for what cannot be read, too.
        "unicode(1)" | "json_array_length(1)" | "json_array_length(2)" | "json_error_position(1)" | "regexp(2)" => {
            Value::of(INTEGER, true)
        }
        "date(-1)" | "time(-1)" | "datetime(-1)" | "strftime(-1)" | "timediff(2)" | "concat_ws(-4)"
        | "json_type(1)" | "json_type(2)" | "->(2)" | "json_pretty(1)" | "json_pretty(2)" | "json_set(-1)"
        | "json_insert(-1)" | "json_replace(-1)" | "json_remove(-1)" | "json_patch(2)" | "soundex(1)"
        | "snippet(-1)" | "highlight(-1)" => Value::of(TEXT, true),
        "julianday(-1)" | "bm25(-1)" | "sqrt(1)" | "exp(1)" | "ln(1)" | "log(1)" | "log(2)" | "log10(1)"
        | "log2(1)" | "pow(2)" | "power(2)" | "sin(1)" | "cos(1)" | "tan(1)" | "asin(1)" | "acos(1)" | "atan(1)"
        | "atan2(2)" | "sinh(1)" | "cosh(1)" | "tanh(1)" | "asinh(1)" | "acosh(1)" | "atanh(1)" | "mod(2)"
        | "radians(1)" | "degrees(1)" => Value::of(REAL, true),
        "ceil(1)" | "ceiling(1)" | "floor(1)" | "trunc(1)" => Value::of(Classes::NUMBER, true),
        // A REAL only if it is asked for fractions.
        "unixepoch(-1)" => Value { certain: false, ..Value::of(INTEGER, true) },
        "unhex(1)" | "unhex(2)" => Value::of(Classes::BLOB, true),
        "nullif(2)" => Value { parameter: None, constant: None, ..first() }.nullable(),
        "likelihood(2)" | "likely(1)" | "unlikely(1)" => first(),
        _ => Value::ANY,
    }
}

/// Of a part of a text or a blob. That of an empty blob is NULL.
fn of_same_text(of: &Value, null: bool) -> Value {
    let null = null || !of.certain || of.classes.has(Classes::BLOB);
    let blob = if of.classes.has(Classes::BLOB) { Classes::BLOB } else { Classes::NONE };
    let text = if of.classes.within(Classes::BLOB) { Classes::NONE } else { TEXT };
    Value { certain: of.certain, ..Value::of(text.or(blob), null) }
}

/// The classes of a number that is made of a value.
pub(super) fn number(of: &Value) -> Classes {
    match of.classes {
        classes if classes.within(INTEGER) => INTEGER,
        classes if classes.within(REAL) => REAL,
        _ => Classes::NUMBER,
    }
}

/// What an aggregate has collected after one more row. `so_far` is NULL before the first.
pub(super) fn collected(call: &str, so_far: &Value, arguments: &[Value]) -> Value {
    let argument = match (name(call), arguments) {
        ("count" | "row_number" | "rank" | "dense_rank", _) => return Value::INTEGER,
        (_, [first, ..]) => first,
        (_, []) => return Value::ANY,
    };
    Value {
        null: so_far.null && argument.null,
        classes: so_far.classes.or(argument.classes),
        certain: so_far.certain && argument.certain,
        ..Value::ANY
    }
}

/// What an aggregate returns of what it has collected.
pub(super) fn aggregate(functions: &[Function], call: &str, collected: &Value) -> Value {
    if let Some(value) = declared(functions, call) {
        return value;
    }
    let empty = collected.null;
    // The sum of what is infinite, with both signs, is none.
    let undefined = !collected.is_finite();
    match name(call) {
        "count" | "row_number" | "rank" | "dense_rank" | "ntile" => Value::INTEGER,
        "total" => Value::of(REAL, undefined),
        "avg" => Value::of(REAL, empty || undefined),
        "sum" => Value { certain: collected.certain, ..Value::of(number(collected), empty || undefined) },
        "min" | "max" => Value { certain: collected.certain, ..Value::of(collected.classes, empty) },
        "group_concat" | "string_agg" => Value::of(TEXT, empty),
        "json_group_array" | "json_group_object" => Value::of(TEXT, false),
        "percent_rank" | "cume_dist" => Value::of(REAL, false),
        _ => Value::ANY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn a_function_returns_what_the_manual_says() {
        let text = Value::of(TEXT, false);
        assert_eq!(scalar(&[], "lower(1)", std::slice::from_ref(&text)), Value::of(TEXT, false));
        assert!(scalar(&[], "lower(1)", &[text.clone().nullable()]).null);
        assert!(!scalar(&[], "hex(1)", &[text.clone().nullable()]).null);
        assert!(
            scalar(&[], "sign(1)", std::slice::from_ref(&text)).null && !scalar(&[], "sign(1)", &[Value::INTEGER]).null
        );
        assert_eq!(scalar(&[], "substr(2)", &[Value::of(Classes::BLOB, false)]).classes, Classes::BLOB);
        assert_eq!(scalar(&[], "strange(1)", &[text]), Value::ANY);
    }

    #[test]
    fn a_declared_function_hides_one_of_sqlite() {
        let own =
            Function { name: "Lower".into(), arguments: 1, returns: Kind::Blob, nullable: false, aggregate: false };
        assert_eq!(scalar(&[own], "lower(1)", &[Value::ANY]), Value::of(Classes::BLOB, false));
    }

    #[test]
    fn an_aggregate_of_no_rows_is_null_unless_it_counts() {
        let rows = collected("sum(1)", &Value::NULL, &[Value::INTEGER]);
        assert_eq!(aggregate(&[], "sum(1)", &rows), Value::INTEGER);
        assert!(aggregate(&[], "sum(1)", &Value::NULL).null && !aggregate(&[], "count(1)", &Value::NULL).null);
        let reals = collected("sum(1)", &Value::NULL, &[Value::of(REAL, false)]);
        assert!(aggregate(&[], "sum(1)", &reals).null, "of +inf and -inf");
        assert!(!aggregate(&[], "max(1)", &reals).null);
    }
}
