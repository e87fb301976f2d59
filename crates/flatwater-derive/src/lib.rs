//! The macros of Flatwater: the derive macros, and the one that embeds migrations. Programs use them through crate `flatwater`, which documents them.
//!
//! Owns: the entry points. Runs in the compiler. Invariant: the code that is made names everything by its full path, so
//! that it means the same wherever it stands. Leaves out: what the code calls, which `flatwater` owns.

mod attributes;
mod case;
mod from_row;
mod generics;
mod migrations;
mod values;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `flatwater::FromRow`: reading a struct from a row.
///
/// A field is read from the column of its name. The fields of a tuple struct are read by position, and the result must
/// have as many columns.
///
/// Attributes of a struct, in `#[flatwater(...)]`:
/// - `rename_all = "..."`: the case of the column names, spelled as in serde: `lowercase`, `UPPERCASE`, `PascalCase`,
///   `camelCase`, `snake_case`, `SCREAMING_SNAKE_CASE`, `kebab-case`, `SCREAMING-KEBAB-CASE`
/// - `crate = "..."`: the path of crate flatwater, where it has another name
///
/// Attributes of a field, in `#[flatwater(...)]`:
/// - `rename = "..."`: the name of its column
/// - `default`, `default = "path"`: its value where the result has no such column: that of `Default`, or of a function.
///   A NULL is not replaced
/// - `flatten`: the field is a struct that reads its own columns of the same row. An `Option` of a struct is `None` if
///   all of them are NULL, as after a LEFT JOIN
/// - `skip`: no column; the value of `Default`
/// - `try_from = "T"`: the column is read as a `T`, which is converted
/// - `json`: the column is JSON text, and NULL is read as `null` (feature `serde_json` of flatwater)
#[proc_macro_derive(FromRow, attributes(flatwater))]
pub fn derive_from_row(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    from_row::derive(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Implements `flatwater::FromSql`: reading one value.
///
/// - A struct of one field is read as the field is.
/// - An enum without fields is read from the names of its variants as text. `#[flatwater(rename_all = "...")]` on the
///   enum sets their case, `#[flatwater(rename = "...")]` on a variant its name.
/// - An enum with `#[repr(i64)]`, or another integer type that fits into `i64`, is read from the numbers of its variants.
///
/// `#[flatwater(crate = "...")]` is the path of crate flatwater, where it has another name.
#[proc_macro_derive(FromSql, attributes(flatwater))]
pub fn derive_from_sql(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    values::derive_from_sql(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Implements `flatwater::ToSql`: binding a value, in the form in which the derived `FromSql` reads it.
#[proc_macro_derive(ToSql, attributes(flatwater))]
pub fn derive_to_sql(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    values::derive_to_sql(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes a folder of migrations a part of the program: `migrations!("migrations")` is a `flatwater::Migrations` of the folder's files, as
/// [`Migrations::from_dir`](../flatwater/struct.Migrations.html#method.from_dir) reads them when the program runs.
///
/// The path is that of the package's `Cargo.toml`. It does not compile, with an error that names the file: without a migration in the
/// folder, for a file that has no number, has that of another one, or is empty. The file names are those of [`Migrations::new`](../flatwater/struct.Migrations.html#method.new).
///
/// A file that changes is compiled again. That one was added, stable Rust does not see: a `build.rs` of
/// `fn main() { println!("cargo::rerun-if-changed=migrations"); }` does.
///
/// `migrations!("migrations", crate = path)` is for a program in which crate flatwater has another name.
#[proc_macro]
pub fn migrations(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as migrations::Input);
    migrations::embed(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
