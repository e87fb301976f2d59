//! `FromSql` and `ToSql` of structs of one field and of enums without fields.
//!
//! Owns: their forms in the database, and the code of both traits. Invariant: what `ToSql` writes, `FromSql` reads.
//! Leaves out: types of several columns (`from_row`).

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Error, Ident, Member, Result, Type};

use crate::attributes::{Container, refuse, variant_name};
use crate::generics::Bounds;

/// What a value is stored as.
enum Form {
    /// As the one field is.
    Field(Member, Box<Type>),
    /// As one of these texts.
    Text(Vec<(Ident, String)>),
    /// As the number of the variant, whose type this is.
    Number(Ident, Vec<Ident>),
}

/// The integer types whose values all fit into SQLite's.
const NUMBERS: [&str; 8] = ["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32"];

impl Form {
    fn of(input: &DeriveInput, container: &Container) -> Result<Self> {
        match &input.data {
            Data::Struct(data) if data.fields.len() == 1 => {
                let (member, field) = data.fields.members().zip(&data.fields).next().ok_or_else(|| unfit(input))?;
                refuse(&field.attrs)?;
                match container.case {
                    Some((_, span)) => Err(Error::new(span, "`rename_all` is for enums here")),
                    None => Ok(Self::Field(member, field.ty.clone().into())),
                }
            }
            Data::Enum(data) if !data.variants.is_empty() => match number_type(input)? {
                Some(number) => Self::number(data, number, container),
                None => Self::text(data, container),
            },
            _ => Err(unfit(input)),
        }
    }

    fn text(data: &DataEnum, container: &Container) -> Result<Self> {
        let mut texts: Vec<(Ident, String)> = Vec::new();
        for variant in &data.variants {
            without_fields(variant)?;
            let plain = variant.ident.unraw().to_string();
            let text = match (variant_name(&variant.attrs)?, container.case) {
                (Some(name), _) => name.value(),
                (None, Some((case, _))) => case.of_variant(&plain),
                (None, None) => plain,
            };
            if let Some((other, _)) = texts.iter().find(|(_, known)| *known == text) {
                return Err(Error::new(variant.ident.span(), format!("stored as \"{text}\", like `{other}`")));
            }
            texts.push((variant.ident.clone(), text));
        }
        Ok(Self::Text(texts))
    }

    fn number(data: &DataEnum, number: Ident, container: &Container) -> Result<Self> {
        let stored = format!("with #[repr({number})] the variants are stored as their numbers, which have no names");
        if let Some((_, span)) = container.case {
            return Err(Error::new(span, stored));
        }
        for variant in &data.variants {
            without_fields(variant)?;
            if let Some(name) = variant_name(&variant.attrs)? {
                return Err(Error::new(name.span(), stored));
            }
        }
        Ok(Self::Number(number, data.variants.iter().map(|variant| variant.ident.clone()).collect()))
    }
}

fn unfit(input: &DeriveInput) -> Error {
    let message = "a value can be a struct of one field or an enum without fields; FromRow reads several columns";
    Error::new(input.ident.span(), message)
}

fn without_fields(variant: &syn::Variant) -> Result<()> {
    if variant.fields.is_empty() {
        return Ok(());
    }
    Err(Error::new(variant.fields.span(), "a variant that is stored as one value cannot have fields"))
}

/// Returns the integer type in `#[repr(...)]`.
fn number_type(input: &DeriveInput) -> Result<Option<Ident>> {
    let mut number = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            let Some(name) = meta.path.get_ident() else { return Ok(()) };
            if NUMBERS.iter().any(|known| name == known) {
                number = Some(name.clone());
            } else if ["u64", "usize", "u128", "i128"].iter().any(|large| name == large) {
                return Err(Error::new(
                    name.span(),
                    "SQLite's integers are i64, which cannot hold every number of this type",
                ));
            }
            Ok(())
        })?;
    }
    Ok(number)
}

pub(crate) fn derive_from_sql(input: &DeriveInput) -> Result<TokenStream> {
    let container = Container::read(&input.attrs)?;
    let mut bounds = Bounds::new(&input.generics);
    let (flatwater, name) = (&container.path, &input.ident);
    let read = match Form::of(input, &container)? {
        Form::Field(member, of) => {
            bounds.add(&of, &quote!(#flatwater::FromSql));
            let read = quote_spanned!(of.span()=> <#of as #flatwater::FromSql>::column_result(value)?);
            quote!(::core::result::Result::Ok(Self { #member: #read }))
        }
        Form::Text(texts) => {
            let (variants, names): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
            let unknown = format!("it is not one of \"{}\"", names.join("\", \""));
            quote! {
                match value.as_str()? {
                    #(#names => ::core::result::Result::Ok(Self::#variants),)*
                    _ => #flatwater::__private::unknown(#unknown),
                }
            }
        }
        Form::Number(number, variants) => quote! {
            match value.as_i64()? {
                #(known if known == Self::#variants as #number as i64 => ::core::result::Result::Ok(Self::#variants),)*
                _ => #flatwater::__private::unknown("no variant has this number"),
            }
        },
    };
    let (parameters, arguments, conditions) = bounds.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #flatwater::FromSql for #name #arguments #conditions {
            fn column_result(value: #flatwater::ValueRef<'_>) -> #flatwater::rusqlite::types::FromSqlResult<Self> {
                #read
            }
        }
    })
}

pub(crate) fn derive_to_sql(input: &DeriveInput) -> Result<TokenStream> {
    let container = Container::read(&input.attrs)?;
    let mut bounds = Bounds::new(&input.generics);
    let (flatwater, name) = (&container.path, &input.ident);
    let output = quote!(#flatwater::rusqlite::types::ToSqlOutput);
    let write = match Form::of(input, &container)? {
        Form::Field(member, of) => {
            bounds.add(&of, &quote!(#flatwater::ToSql));
            quote_spanned!(of.span()=> <#of as #flatwater::ToSql>::to_sql(&self.#member))
        }
        Form::Text(texts) => {
            let (variants, names): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
            quote!(::core::result::Result::Ok(#output::from(match self { #(Self::#variants => #names,)* })))
        }
        Form::Number(number, variants) => quote! {
            ::core::result::Result::Ok(#output::from(match self { #(Self::#variants => Self::#variants as #number as i64,)* }))
        },
    };
    let (parameters, arguments, conditions) = bounds.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #flatwater::ToSql for #name #arguments #conditions {
            fn to_sql(&self) -> #flatwater::rusqlite::Result<#output<'_>> {
                #write
            }
        }
    })
}
