//! The macros of Flatwater that check SQL when a program is compiled. Programs use them through crate `flatwater`, which documents them.
//!
//! Owns: the entry points. Runs in the compiler, which has its own SQLite. Invariant: the code that is made names everything by its full
//! path. Leaves out: what a text returns (`flatwater-check`), and what the code calls, which `flatwater` owns.

mod expand;
mod input;
mod parameters;
mod schemas;
mod types;

use proc_macro::TokenStream;
use syn::parse_macro_input;

use crate::expand::{Output, expand};
use crate::input::{Given, Input, Source};

fn run(input: proc_macro::TokenStream, given: Given, output: Output) -> TokenStream {
    let parser = |stream: syn::parse::ParseStream<'_>| Input::parse(stream, given);
    let input = parse_macro_input!(input with parser);
    expand(&input, output).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Checks one statement when the program is compiled, and makes a [`Checked`](../flatwater/calls/struct.Checked.html) of it, whose
/// rows are structs with a field for each column; or a [`CheckedExecute`](../flatwater/calls/struct.CheckedExecute.html) of a statement
/// that returns no rows.
///
/// ```ignore
/// let user = flatwater::query!("SELECT id, name, email FROM users WHERE id = ?", id).one(&db).await?;
/// let (id, email): (i64, Option<String>) = (user.id, user.email);
/// flatwater::query!("UPDATE users SET name = :name WHERE id = :id", id = id, name = "Ada").execute(&db).await?;
/// ```
///
/// The schema is that of the program's migrations: the folder `migrations` beside its `Cargo.toml`, or what `flatwater.toml` names. The
/// name of a column may say more, as in sqlx: `AS "id!"` is never NULL, `AS "note?"` may be, `AS "id: UserId"` is read as that type.
///
/// Before the text may stand `database = "name"`, for a database of `flatwater.toml`, and `crate = path`, where crate flatwater has another
/// name. The text may be several literals with `+` between them.
#[proc_macro]
pub fn query(input: TokenStream) -> TokenStream {
    run(input, Given { of_type: false, source: Source::Text }, Output::Struct)
}

/// As [`query`](macro@query), with rows of a named struct: `query_as!(User, "SELECT id, name FROM users")`. It has a field for each
/// column, of the column's type or one that is made `From` it. `AS "age: _"` reads a column as the type of its field.
#[proc_macro]
pub fn query_as(input: TokenStream) -> TokenStream {
    run(input, Given { of_type: true, source: Source::Text }, Output::Named)
}

/// As [`query`](macro@query), of a statement that returns one column: its values.
#[proc_macro]
pub fn query_value(input: TokenStream) -> TokenStream {
    run(input, Given { of_type: false, source: Source::Text }, Output::Value)
}

/// As [`query`](macro@query), of a text in a file: `query_file!("queries/user.sql", id)`. The path is that of `Cargo.toml`.
#[proc_macro]
pub fn query_file(input: TokenStream) -> TokenStream {
    run(input, Given { of_type: false, source: Source::File }, Output::Struct)
}

/// As [`query_as`](macro@query_as), of a text in a file.
#[proc_macro]
pub fn query_file_as(input: TokenStream) -> TokenStream {
    run(input, Given { of_type: true, source: Source::File }, Output::Named)
}
