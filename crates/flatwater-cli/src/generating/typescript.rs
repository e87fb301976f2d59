//! Functions in TypeScript.
//!
//! Owns: their code, a module of ES. Invariant: a row is an object with the names of the columns. Leaves out: kinds.

use std::fmt::Write as _;

use flatwater_check::{Kind, Label};

use super::queries::{Query, Returns};
use super::{HEAD, camel, is_named, names_of, pascal};

pub(super) fn type_of(kind: Kind, standard: bool) -> &'static str {
    match (kind, standard) {
        (Kind::Boolean, true) => "boolean",
        (Kind::DateTime, true) => "Date",
        (Kind::Json, true) => "unknown",
        (Kind::Decimal | Kind::Uuid, true) => "string",
        (Kind::Integer | Kind::Real | Kind::Number | Kind::Boolean, _) => "number",
        (Kind::Text | Kind::Date | Kind::Time | Kind::DateTime | Kind::Json, _) => "string",
        (Kind::Blob, _) => "Uint8Array",
        (Kind::Uuid, _) => "string | Uint8Array",
        (Kind::Decimal, _) => "number | string",
        (Kind::Any, _) => "number | string | Uint8Array",
    }
}

/// The module of these queries.
pub(crate) fn typescript(queries: &[Query], standard: bool) -> String {
    let any = queries.iter().any(|query| query.checked.parameters.iter().any(|it| it.kind == Kind::Any));
    let imports = if any { "ParamValue, Session" } else { "Session" };
    let mut code = format!("// {HEAD}\n\nimport type {{ {imports} }} from \"flatwater\";\n");
    for query in queries {
        code.push('\n');
        function(&mut code, query, standard);
    }
    code
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A name of a property, in quotes if it needs them.
fn property(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

fn function(code: &mut String, query: &Query, standard: bool) {
    let row = format!("{}Row", pascal(&query.name));
    let of_column = |kind, nullable| format!("{}{}", type_of(kind, standard), if nullable { " | null" } else { "" });
    if !query.checked.columns.is_empty() {
        let _ = writeln!(code, "export interface {row} {{");
        for column in &query.checked.columns {
            let label = Label::of(&column.name);
            let of = of_column(column.kind, label.is_nullable(column.nullable));
            let _ = writeln!(code, "  {}: {of};", property(label.name));
        }
        code.push_str("}\n\n");
    }
    let parameters = &query.checked.parameters;
    let names = names_of(parameters);
    let of_parameter = |kind, nullable| match kind {
        Kind::Any => "ParamValue".to_owned(),
        Kind::Boolean => format!("number | boolean{}", if nullable { " | null" } else { "" }),
        _ => of_column(kind, nullable),
    };
    let mut given = String::from("on: Session");
    if !parameters.is_empty() {
        let each = parameters
            .iter()
            .enumerate()
            .map(|(at, it)| format!("{}: {}", names[at], of_parameter(it.kind, it.nullable)));
        let _ = write!(given, ", args: {{ {} }}", each.collect::<Vec<_>>().join("; "));
    }
    let values = parameters.iter().enumerate().map(|(at, it)| match (&it.name, is_named(parameters)) {
        (Some(name), true) => format!("{}: args.{}", property(name), names[at]),
        _ => format!("args.{}", names[at]),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let values = match (parameters.is_empty(), is_named(parameters)) {
        (true, _) => "undefined".to_owned(),
        (false, true) => format!("{{ {values} }}"),
        (false, false) => format!("[{values}]"),
    };
    comment(code, query);
    let (returned, body) = body(query, &row, &quoted(&query.sql), &values, standard);
    let _ = writeln!(code, "export async function {}({given}): Promise<{returned}> {{\n{body}}}", camel(&query.name));
}

fn comment(code: &mut String, query: &Query) {
    if !query.comment.is_empty() {
        let _ = writeln!(code, "/** {} */", query.comment.join(" ").replace("*/", "* /"));
    }
}

fn body(query: &Query, row: &str, sql: &str, values: &str, standard: bool) -> (String, String) {
    let options = if standard { ", { types: \"standard\" }" } else { "" };
    let columns = query.checked.columns.iter().map(|column| {
        let label = Label::of(&column.name);
        format!("{}: row[{}]", property(label.name), quoted(&column.name))
    });
    let renamed = format!("({{ {} }}) as {row}", columns.collect::<Vec<_>>().join(", "));
    let call = |method: &str, of: &str| format!("on.{method}<{of}>({sql}, {values}{options})");
    let any = "Record<string, unknown>";
    match (query.returns, query.has_labels()) {
        (Returns::One, false) => (row.to_owned(), format!("  return {};\n", call("queryOne", row))),
        (Returns::Optional, false) => {
            (format!("{row} | undefined"), format!("  return {};\n", call("queryOptional", row)))
        }
        (Returns::Many, false) => (format!("{row}[]"), format!("  return {};\n", call("query", row))),
        (Returns::One, true) => {
            (row.to_owned(), format!("  const row = await {};\n  return {renamed};\n", call("queryOne", any)))
        }
        (Returns::Optional, true) => {
            let call = call("queryOptional", any);
            (format!("{row} | undefined"), format!("  const row = await {call};\n  return row && ({renamed});\n"))
        }
        (Returns::Many, true) => {
            let call = call("query", any);
            (format!("{row}[]"), format!("  const rows = await {call};\n  return rows.map((row) => {renamed});\n"))
        }
        (Returns::Nothing, _) => ("void".to_owned(), format!("  await on.execute({sql}, {values});\n")),
        (Returns::Changes, _) => {
            ("number".to_owned(), format!("  return (await on.execute({sql}, {values})).changes;\n"))
        }
        (Returns::LastRowid, _) => {
            let body = format!("  return (await on.execute({sql}, {values})).lastInsertRowid;\n");
            ("number | bigint | null".to_owned(), body)
        }
    }
}
