//! The attributes in `#[flatwater(...)]`.
//!
//! Owns: reading them. Invariant: an unknown attribute, one that is given twice, and two that exclude each other are
//! errors at their place. Leaves out: the code that is made of them.

use proc_macro2::{Ident, Span};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, ExprPath, LitStr, Path, Result, Type};

use crate::case::{CASES, Case};

/// Of a struct or an enum.
pub(crate) struct Container {
    /// The path of crate flatwater.
    pub(crate) path: Path,
    pub(crate) case: Option<(Case, Span)>,
}

/// Of a field.
#[derive(Default)]
pub(crate) struct Field {
    pub(crate) rename: Option<LitStr>,
    pub(crate) default: Option<Default>,
    pub(crate) flatten: bool,
    pub(crate) skip: bool,
    pub(crate) try_from: Option<Type>,
    pub(crate) json: bool,
    given: Vec<(String, Span)>,
}

/// The value of a field whose column is absent.
pub(crate) enum Default {
    Trait,
    Function(ExprPath),
}

/// Attributes that cannot stand at one field.
const EXCLUDED: [(&str, &[&str]); 3] = [
    ("skip", &["rename", "default", "flatten", "try_from", "json"]),
    ("flatten", &["rename", "default", "try_from", "json"]),
    ("json", &["try_from"]),
];

fn each(attributes: &[Attribute], mut read: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<bool>) -> Result<()> {
    let ours = attributes.iter().filter(|attribute| attribute.path().is_ident("flatwater"));
    for attribute in ours {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(Ident::to_string).unwrap_or_default();
            if read(&name, &meta)? {
                Ok(())
            } else {
                Err(meta.error(format!("flatwater has no attribute `{name}` here")))
            }
        })?;
    }
    Ok(())
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}

impl Container {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut container = Self { path: syn::parse_quote!(::flatwater), case: None };
        each(attributes, |name, meta| {
            match name {
                "crate" => container.path = text(meta)?.parse()?,
                "rename_all" => {
                    let name = text(meta)?;
                    let found = CASES.iter().find(|(known, _)| *known == name.value());
                    let (_, case) = found.ok_or_else(|| {
                        let known = CASES.map(|(known, _)| format!("\"{known}\"")).join(", ");
                        Error::new(name.span(), format!("an unknown case; the cases are {known}"))
                    })?;
                    container.case = Some((*case, name.span()));
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(container)
    }
}

impl Field {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut field = Self::default();
        each(attributes, |name, meta| {
            match name {
                "rename" => field.rename = Some(text(meta)?),
                "default" if meta.input.peek(syn::Token![=]) => {
                    field.default = Some(Default::Function(text(meta)?.parse()?));
                }
                "default" => field.default = Some(Default::Trait),
                "flatten" => field.flatten = true,
                "skip" => field.skip = true,
                "try_from" => field.try_from = Some(text(meta)?.parse()?),
                "json" if cfg!(feature = "json") => field.json = true,
                "json" => return Err(meta.error("`json` needs the feature `serde_json` of flatwater")),
                _ => return Ok(false),
            }
            field.admit(name, meta)?;
            Ok(true)
        })?;
        Ok(field)
    }

    fn admit(&mut self, name: &str, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let excludes = |a: &str, b: &str| EXCLUDED.iter().any(|(of, list)| *of == a && list.contains(&b));
        for (other, _) in &self.given {
            if other == name {
                return Err(meta.error(format!("`{name}` is given twice")));
            }
            if excludes(name, other) || excludes(other, name) {
                return Err(meta.error(format!("`{name}` and `{other}` cannot be used on one field")));
            }
        }
        self.given.push((name.to_owned(), meta.path.segments[0].ident.span()));
        Ok(())
    }

    /// Refuses attributes that say which column a field without a name is read from.
    pub(crate) fn refuse_names(&self) -> Result<()> {
        match self.given.iter().find(|(name, _)| ["rename", "default", "flatten"].contains(&&**name)) {
            None => Ok(()),
            Some((name, span)) => {
                Err(Error::new(*span, format!("`{name}` is for fields with names: a tuple struct is read by position")))
            }
        }
    }
}

/// Reads the name of a variant, if one is given.
pub(crate) fn variant_name(attributes: &[Attribute]) -> Result<Option<LitStr>> {
    let mut rename = None;
    each(attributes, |name, meta| {
        if name == "rename" {
            rename = Some(text(meta)?);
        }
        Ok(name == "rename")
    })?;
    Ok(rename)
}

/// Refuses attributes at a place that has none.
pub(crate) fn refuse(attributes: &[Attribute]) -> Result<()> {
    each(attributes, |_, _| Ok(false))
}
