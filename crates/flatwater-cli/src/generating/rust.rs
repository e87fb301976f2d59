//! Functions in Rust, over the macros that check SQL.
//!
//! Owns: their code. Invariant: the macros check the text again when the program is compiled. Leaves out: what they do.

use std::fmt::Write as _;

use flatwater_check::{Kind, Label};

use super::queries::{Query, Returns};
use super::{HEAD, names_of, pascal, snake};

fn type_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer => "i64",
        Kind::Real | Kind::Number => "f64",
        Kind::Boolean => "bool",
        Kind::Blob => "Vec<u8>",
        Kind::Decimal | Kind::Any => "flatwater::Value",
        _ => "String",
    }
}

/// The type that a value is borrowed as.
fn borrowed(kind: Kind) -> &'static str {
    match type_of(kind) {
        "String" => "&str",
        "Vec<u8>" => "&[u8]",
        other => other,
    }
}

/// The module of these queries. Types of `flatwater.toml` are not known here: a column says its own by its name.
pub(crate) fn rust(queries: &[Query]) -> String {
    let mut code = format!(
        "//! {HEAD}\n\n#![allow(clippy::needless_raw_string_hashes, clippy::too_many_arguments, unreachable_pub)]\n#![cfg_attr(rustfmt, rustfmt_skip)]\n"
    );
    for query in queries {
        code.push('\n');
        function(&mut code, query);
    }
    code
}

fn or_option(of: &str, nullable: bool) -> String {
    if nullable { format!("Option<{of}>") } else { of.to_owned() }
}

fn function(code: &mut String, query: &Query) {
    let row = format!("{}Row", pascal(&query.name));
    if !query.checked.columns.is_empty() {
        let _ = writeln!(code, "/// A row of [`{}`].\n#[derive(Debug, Clone, PartialEq)]", snake(&query.name));
        let _ = writeln!(code, "pub struct {row} {{");
        for column in &query.checked.columns {
            let label = Label::of(&column.name);
            let of = label.type_name.filter(|name| *name != "_").unwrap_or_else(|| type_of(column.kind));
            let of = or_option(of, label.is_nullable(column.nullable));
            let _ = writeln!(code, "    /// The column of this name.\n    pub {}: {of},", label.name);
        }
        code.push_str("}\n\n");
    }
    let parameters = &query.checked.parameters;
    let names = names_of(parameters);
    let given: String = parameters
        .iter()
        .enumerate()
        .map(|(at, it)| format!(", {}: {}", names[at], or_option(borrowed(it.kind), it.nullable)))
        .collect();
    let values: String = names.iter().map(|name| format!(", {name}")).collect();
    let sql = format!("r##\"{}\"##", query.sql);
    let (returned, call) = match query.returns {
        Returns::One => (row.clone(), format!("flatwater::query_as!({row}, {sql}{values}).one(on).await")),
        Returns::Optional => {
            (format!("Option<{row}>"), format!("flatwater::query_as!({row}, {sql}{values}).optional(on).await"))
        }
        Returns::Many => (format!("Vec<{row}>"), format!("flatwater::query_as!({row}, {sql}{values}).all(on).await")),
        Returns::Nothing => ("()".to_owned(), format!("flatwater::query!({sql}{values}).execute(on).await.map(drop)")),
        Returns::Changes => {
            ("u64".to_owned(), format!("Ok(flatwater::query!({sql}{values}).execute(on).await?.changes)"))
        }
        Returns::LastRowid => {
            let call = format!("Ok(flatwater::query!({sql}{values}).execute(on).await?.last_insert_rowid)");
            ("Option<i64>".to_owned(), call)
        }
    };
    let comment = if query.comment.is_empty() { format!("The query {}.", query.name) } else { query.comment.join(" ") };
    let _ = writeln!(code, "/// {comment}\n///\n/// # Errors\n/// Those of the call.");
    let name = snake(&query.name);
    let _ = writeln!(code, "pub async fn {name}(on: &flatwater::Session{given}) -> flatwater::Result<{returned}> {{");
    let _ = writeln!(code, "    {call}\n}}");
}
