//! The interface `Database` for Kysely.
//!
//! Owns: its code. Invariant: a column that a row need not give has `Generated`, one that it cannot give `GeneratedAlways`. Leaves out:
//! kinds.

use std::fmt::Write as _;

use flatwater_check::Table;

use super::typescript::type_of;
use super::{HEAD, TypeOf, pascal};

/// The interfaces of these tables.
pub(crate) fn kysely(tables: &[Table], standard: bool) -> String {
    let of: TypeOf = type_of;
    let mut body = String::new();
    for table in tables {
        let _ = writeln!(body, "\nexport interface {}Table {{", pascal(&table.name));
        for column in &table.columns {
            let null = if column.nullable { " | null" } else { "" };
            let plain = format!("{}{null}", of(column.kind, standard));
            let given = match (column.is_computed, column.has_default) {
                (true, _) => format!("GeneratedAlways<{plain}>"),
                (false, true) => format!("Generated<{plain}>"),
                (false, false) => plain,
            };
            let _ = writeln!(body, "  {}: {given};", column.name);
        }
        body.push_str("}\n");
    }
    let names = ["Generated", "GeneratedAlways"].into_iter().filter(|name| body.contains(&format!("{name}<")));
    let names = names.collect::<Vec<_>>().join(", ");
    let mut code = format!("// {HEAD}\n");
    if !names.is_empty() {
        let _ = writeln!(code, "\nimport type {{ {names} }} from \"kysely\";");
    }
    code += &body;
    code.push_str("\nexport interface Database {\n");
    for table in tables {
        let _ = writeln!(code, "  {}: {}Table;", table.name, pascal(&table.name));
    }
    code + "}\n"
}
