//! Functions in Python, for asyncio.
//!
//! Owns: their code. Invariant: a row is a frozen dataclass, made by the positions of the columns. Leaves out: kinds.

use std::fmt::Write as _;

use flatwater_check::{Kind, Label};

use super::queries::{Query, Returns};
use super::{HEAD, is_named, names_of, pascal, snake};

fn type_of(kind: Kind, standard: bool) -> &'static str {
    match (kind, standard) {
        (Kind::Boolean, true) => "bool",
        (Kind::Date, true) => "datetime.date",
        (Kind::Time, true) => "datetime.time",
        (Kind::DateTime, true) => "datetime.datetime",
        (Kind::Json, true) => "Any",
        (Kind::Uuid, true) => "uuid.UUID",
        (Kind::Decimal, true) => "decimal.Decimal",
        (Kind::Integer | Kind::Boolean, _) => "int",
        (Kind::Real | Kind::Number, _) => "float",
        (Kind::Text | Kind::Date | Kind::Time | Kind::DateTime | Kind::Json, _) => "str",
        (Kind::Blob, _) => "bytes",
        (Kind::Uuid, _) => "str | bytes",
        (Kind::Decimal, _) => "float | str",
        (Kind::Any, _) => "float | str | bytes",
    }
}

/// The module of these queries.
pub(crate) fn python(queries: &[Query], standard: bool) -> String {
    let mut body = String::new();
    for query in queries {
        body.push_str("\n\n");
        function(&mut body, query, standard);
    }
    let mut code = format!("# {HEAD}\n\nfrom __future__ import annotations\n\n");
    for module in ["datetime", "decimal", "uuid"].into_iter().filter(|module| body.contains(&format!("{module}."))) {
        let _ = writeln!(code, "import {module}");
    }
    if body.contains("@dataclass") {
        code.push_str("from dataclasses import dataclass\n");
    }
    code.push_str("from typing import TYPE_CHECKING, Any\n\nif TYPE_CHECKING:\n");
    code.push_str("    from flatwater import Connection, Database, Snapshot, Transaction\n\n");
    code.push_str("    On = Database[Any, Any] | Transaction[Any, Any] | Snapshot[Any, Any] | Connection[Any, Any]\n");
    code + &body
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A keyword cannot be a name.
fn name(name: &str) -> String {
    const KEYWORDS: [&str; 12] =
        ["from", "class", "def", "is", "in", "not", "or", "and", "if", "else", "import", "global"];
    let name = if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name.to_owned() };
    if KEYWORDS.contains(&&*name) { name + "_" } else { name }
}

fn function(code: &mut String, query: &Query, standard: bool) {
    let row = format!("{}Row", pascal(&query.name));
    let or_none = |of: &str, nullable: bool| format!("{of}{}", if nullable { " | None" } else { "" });
    if !query.checked.columns.is_empty() {
        let _ = writeln!(code, "@dataclass(frozen=True, slots=True)\nclass {row}:");
        for column in &query.checked.columns {
            let label = Label::of(&column.name);
            let of = or_none(type_of(column.kind, standard), label.is_nullable(column.nullable));
            let _ = writeln!(code, "    {}: {of}", name(&snake(label.name)));
        }
        code.push_str("\n\n");
    }
    let parameters = &query.checked.parameters;
    let names = names_of(parameters);
    let each = parameters.iter().enumerate().map(|(at, it)| {
        let of = if it.kind == Kind::Any { "Any".to_owned() } else { or_none(type_of(it.kind, standard), it.nullable) };
        format!(", {}: {of}", name(&names[at]))
    });
    let mut given: String = each.collect();
    if !given.is_empty() {
        given = format!(", *{given}");
    }
    let values = parameters.iter().enumerate().map(|(at, it)| match (&it.name, is_named(parameters)) {
        (Some(of), true) => format!("{}: {}", quoted(of), name(&names[at])),
        _ => format!("{},", name(&names[at])),
    });
    let values: Vec<_> = values.collect();
    let values = match (values.is_empty(), is_named(parameters)) {
        (true, _) => String::new(),
        (false, true) => format!(", {{{}}}", values.join(", ")),
        (false, false) => format!(", ({})", values.join(" ").trim_end_matches(|c| c == ',' && values.len() > 1)),
    };
    let (returned, body) = body(query, &row, &values, standard);
    let _ = writeln!(code, "async def {}(on: On{given}) -> {returned}:", name(&snake(&query.name)));
    if !query.comment.is_empty() {
        let _ = writeln!(code, "    {}", format_args!("\"\"\"{}\"\"\"", query.comment.join(" ").replace('"', "'")));
    }
    let _ = write!(code, "{body}");
}

fn body(query: &Query, row: &str, values: &str, standard: bool) -> (String, String) {
    let sql = quoted(&query.sql);
    let types = if standard { ", types=\"standard\"" } else { "" };
    let call = |method: &str| format!("await on.{method}({sql}{values}, into=tuple{types})");
    let execute = format!("await on.execute({sql}{values})");
    match query.returns {
        Returns::One => (row.to_owned(), format!("    return {row}(*({}))\n", call("query_one"))),
        Returns::Optional => {
            let body =
                format!("    row = {}\n    return None if row is None else {row}(*row)\n", call("query_optional"));
            (format!("{row} | None"), body)
        }
        Returns::Many => (format!("list[{row}]"), format!("    return [{row}(*row) for row in {}]\n", call("query"))),
        Returns::Nothing => ("None".to_owned(), format!("    {execute}\n")),
        Returns::Changes => ("int".to_owned(), format!("    return ({execute}).changes\n")),
        Returns::LastRowid => ("int | None".to_owned(), format!("    return ({execute}).last_insert_rowid\n")),
    }
}
