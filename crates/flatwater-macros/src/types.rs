//! The types in Rust of columns.
//!
//! Owns: which type a column is read as. Invariant: a type never depends on a feature of a crate; what has no type in Rust's library is
//! read as it is stored, unless the name of the column or `flatwater.toml` says more. Leaves out: finding out what a column holds.

use std::collections::BTreeMap;

use flatwater_check::{Column, Kind, Label};
use proc_macro2::Span;
use quote::quote;
use syn::{Error, Path, Result, Type};

/// The type of a column; `None` if it is left to the compiler.
pub(crate) fn of(
    column: &Column,
    label: &Label<'_>,
    types: &BTreeMap<String, String>,
    krate: &Path,
    span: Span,
) -> Result<Option<Type>> {
    let parse = |text: &str, place: &str| {
        syn::parse_str::<Type>(text)
            .map_err(|error| Error::new(span, format!("{place}: `{text}` is not a type: {error}")))
    };
    let plain = match label.type_name {
        Some("_") => return Ok(None),
        Some(text) => parse(text, &format!("the column {:?}", column.name))?,
        None => match named(column, types) {
            Some((key, text)) => parse(text, &format!("flatwater.toml: types.{key:?}"))?,
            None => of_kind(column.kind, krate),
        },
    };
    let nullable = label.is_nullable(column.nullable);
    Ok(Some(if nullable { syn::parse2(quote!(::core::option::Option<#plain>))? } else { plain }))
}

/// The type that `flatwater.toml` has for the column, or for its declared type.
fn named<'a>(column: &Column, types: &'a BTreeMap<String, String>) -> Option<(&'a String, &'a String)> {
    let origin = column.origin.as_ref().map(|(table, column)| format!("{table}.{column}"));
    let keys = [origin.as_ref(), column.declared.as_ref()];
    keys.into_iter().flatten().find_map(|key| types.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)))
}

fn of_kind(kind: Kind, krate: &Path) -> Type {
    match kind {
        Kind::Integer => syn::parse_quote!(i64),
        Kind::Real | Kind::Number => syn::parse_quote!(f64),
        Kind::Boolean => syn::parse_quote!(bool),
        Kind::Text | Kind::Date | Kind::Time | Kind::DateTime | Kind::Json | Kind::Uuid => {
            syn::parse_quote!(::std::string::String)
        }
        Kind::Blob => syn::parse_quote!(::std::vec::Vec<u8>),
        Kind::Decimal | Kind::Any => syn::parse_quote!(#krate::Value),
    }
}
