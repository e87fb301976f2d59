//! What a connection has that is not SQLite's own.
//!
//! Owns: reading its functions and collations from SQLite. Runs on the thread that has the connection. Leaves out: what follows
//! for a program that uses one (`bytecode`).

use std::collections::HashSet;

use crate::bytecode::graph::{Strange, bare};
use crate::connection::EngineConnection;
use crate::connection::functions::registration::Length;
use crate::error::Result;

/// Returns the functions and collations of this connection that are not SQLite's own. A replacement of one of
/// SQLite's collations cannot be seen; a closure of the user may have made one.
pub(super) fn strange(connection: &EngineConnection) -> Result<Strange> {
    let sqlite = connection.sqlite.rusqlite();
    let own = ["BINARY", "NOCASE", "RTRIM"];
    let (mut functions, mut unknown) = (HashSet::new(), HashSet::new());
    let (short, timed) = (connection.functions.of(Length::Short), connection.functions.of(Length::Timed));
    let mut listed = sqlite.prepare("PRAGMA function_list")?;
    let mut rows = listed.query([])?;
    while let Some(row) = rows.next()? {
        if !row.get::<_, bool>("builtin")? {
            let (name, arguments) = (row.get::<_, String>("name")?.to_ascii_lowercase(), row.get::<_, i32>("narg")?);
            if !short.contains(&format!("{name}({arguments})")) {
                unknown.insert(name.clone());
            }
            functions.insert(name);
        }
    }
    let mut collations = HashSet::new();
    let mut listed = sqlite.prepare("PRAGMA collation_list")?;
    let mut rows = listed.query([])?;
    while let Some(row) = rows.next()? {
        let name: String = row.get("name")?;
        if !own.contains(&&*name) || (connection.had_closure && name != own[0]) {
            collations.extend(name.split(',').map(|name| bare(name).to_ascii_lowercase()));
        }
    }
    Ok(Strange { functions, short, timed, unknown, collations })
}
