//! What is given to the macros.
//!
//! Owns: reading it. Invariant: what stands before the text is a setting or a type, what stands behind it is a value. Leaves out: what the
//! text means.

use std::path::{Path, PathBuf};

use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, Ident, LitStr, Result, Token};

/// What a macro takes.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    /// Whether a type stands before the text.
    pub(crate) of_type: bool,
    pub(crate) source: Source,
}

/// Where the text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Text,
    File,
}

pub(crate) struct Input {
    /// The path of crate flatwater.
    pub(crate) krate: syn::Path,
    /// The database, if it is not the only one.
    pub(crate) database: Option<LitStr>,
    pub(crate) of_type: Option<syn::Path>,
    pub(crate) sql: String,
    /// The literal at which a fault is reported.
    pub(crate) literal: LitStr,
    /// The file that has the text.
    pub(crate) file: Option<PathBuf>,
    pub(crate) values: Vec<Value>,
}

/// A value of a parameter.
pub(crate) struct Value {
    /// The name of the parameter, if it is given.
    pub(crate) name: Option<Ident>,
    pub(crate) value: Expr,
}

/// The folder of the program's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from)
}

impl Input {
    pub(crate) fn parse(stream: ParseStream<'_>, given: Given) -> Result<Self> {
        let (mut krate, mut database) = (syn::parse_quote!(::flatwater), None);
        while stream.peek(Ident::peek_any) && stream.peek2(Token![=]) {
            let name = Ident::parse_any(stream)?;
            stream.parse::<Token![=]>()?;
            match &*name.to_string() {
                "crate" => krate = stream.parse()?,
                "database" => database = Some(stream.parse()?),
                _ => {
                    return Err(Error::new(
                        name.span(),
                        "before the text may stand `database = \"name\"` and `crate = path`",
                    ));
                }
            }
            stream.parse::<Token![,]>()?;
        }
        let of_type = if given.of_type { Some(stream.parse()?) } else { None };
        if given.of_type {
            stream.parse::<Token![,]>()?;
        }
        let literal: LitStr = stream.parse()?;
        let (sql, file) = match given.source {
            Source::Text => (text(&literal, stream)?, None),
            Source::File => {
                let path = root().join(literal.value());
                (read(&path).map_err(|message| Error::new(literal.span(), message))?, Some(path))
            }
        };
        Ok(Self { krate, database, of_type, sql, literal, file, values: values(stream)? })
    }
}

/// The literals that a text is made of.
fn text(first: &LitStr, stream: ParseStream<'_>) -> Result<String> {
    let mut sql = first.value();
    while stream.peek(Token![+]) {
        stream.parse::<Token![+]>()?;
        sql.push_str(&stream.parse::<LitStr>()?.value());
    }
    Ok(sql)
}

fn read(path: &Path) -> std::result::Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn values(stream: ParseStream<'_>) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    while !stream.is_empty() {
        stream.parse::<Token![,]>()?;
        if stream.is_empty() {
            break;
        }
        let is_named = stream.peek(Ident::peek_any) && stream.peek2(Token![=]) && !stream.peek2(Token![==]);
        let name = if is_named { Some(Ident::parse_any(stream)?) } else { None };
        if is_named {
            stream.parse::<Token![=]>()?;
        }
        values.push(Value { name, value: stream.parse()? });
    }
    Ok(values)
}
