//! `FromRow` of a struct.
//!
//! Owns: the code of its two steps: finding the columns of the fields, and reading their cells. Invariant: both steps
//! treat the fields in the same order. Leaves out: the steps themselves, which `flatwater` owns.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Path, Result, Type};

use crate::attributes::{Container, Default, Field};
use crate::generics::Bounds;

/// The code of one field, or of all.
#[derive(Default)]
struct Steps {
    find: TokenStream,
    read: TokenStream,
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let container = Container::read(&input.attrs)?;
    let mut bounds = Bounds::new(&input.generics);
    let steps = match &input.data {
        Data::Struct(data) if !data.fields.is_empty() => match &data.fields {
            Fields::Named(_) => named(&container, &data.fields, &mut bounds)?,
            _ => unnamed(&container, &data.fields, &mut bounds)?,
        },
        _ => {
            let message = "FromRow can be derived for structs with fields; FromSql and ToSql for enums without";
            return Err(Error::new(input.ident.span(), message));
        }
    };
    let (flatwater, name, Steps { find, read }) = (&container.path, &input.ident, steps);
    let (parameters, arguments, conditions) = bounds.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #flatwater::FromRow for #name #arguments #conditions {
            fn from_row(row: &#flatwater::Row<'_>) -> #flatwater::Result<Self> {
                #flatwater::__private::in_two_steps(row)
            }

            fn columns(__columns: &mut #flatwater::__private::Columns<'_>) -> #flatwater::Result<()> {
                #find
                ::core::result::Result::Ok(())
            }

            fn from_cells(__cells: &mut #flatwater::__private::Cells<'_>) -> #flatwater::Result<Self> {
                ::core::result::Result::Ok(Self { #read })
            }
        }
    })
}

fn named(container: &Container, fields: &Fields, bounds: &mut Bounds) -> Result<Steps> {
    let mut all = Steps::default();
    for field in fields {
        let attributes = Field::read(&field.attrs)?;
        let Some(name) = &field.ident else { continue };
        let plain = name.unraw().to_string();
        let column = match (&attributes.rename, container.case) {
            (Some(column), _) => column.value(),
            (None, Some((case, _))) => case.of_field(&plain),
            (None, None) => plain,
        };
        let Steps { find, read } = step(&container.path, &column, &field.ty, &attributes, bounds);
        all.find.extend(find);
        all.read.extend(quote!(#name: #read,));
    }
    Ok(all)
}

fn step(flatwater: &Path, column: &str, of: &Type, attributes: &Field, bounds: &mut Bounds) -> Steps {
    let span = of.span();
    if attributes.skip {
        return Steps { find: TokenStream::new(), read: default_value(of, &Default::Trait, bounds) };
    }
    if attributes.flatten {
        bounds.add(of, &quote!(#flatwater::FromRow));
        return Steps {
            find: quote_spanned!(span=> <#of as #flatwater::FromRow>::columns(__columns)?;),
            read: quote_spanned!(span=> <#of as #flatwater::FromRow>::from_cells(__cells)?),
        };
    }
    let Some(default) = &attributes.default else {
        let read = value(flatwater, &quote!(__cells.next()), of, attributes, bounds);
        return Steps { find: quote!(__columns.find(#column)?;), read };
    };
    let read = value(flatwater, &quote!(__cell), of, attributes, bounds);
    let default = default_value(of, default, bounds);
    let read = quote! {
        match __cells.next_if_any() {
            ::core::option::Option::Some(__cell) => #read,
            ::core::option::Option::None => #default,
        }
    };
    Steps { find: quote!(__columns.find_if_any(#column);), read }
}

fn default_value(of: &Type, default: &Default, bounds: &mut Bounds) -> TokenStream {
    match default {
        Default::Function(function) => quote!(#function()),
        Default::Trait => {
            bounds.add(of, &quote!(::core::default::Default));
            quote_spanned!(of.span()=> <#of as ::core::default::Default>::default())
        }
    }
}

/// Reads a cell as the type of a field.
fn value(flatwater: &Path, cell: &TokenStream, of: &Type, attributes: &Field, bounds: &mut Bounds) -> TokenStream {
    let span = of.span();
    if attributes.json {
        let json = quote!(#flatwater::values::Json<#of>);
        bounds.add(&json, &quote!(#flatwater::FromSql));
        return quote_spanned!(span=> #cell.read::<#json>()?.0);
    }
    if let Some(from) = &attributes.try_from {
        bounds.add(from, &quote!(#flatwater::FromSql));
        bounds.add(of, &quote!(::core::convert::TryFrom<#from, Error: ::core::fmt::Display>));
        return quote_spanned!(from.span()=> #cell.convert::<#from, #of>()?);
    }
    bounds.add(of, &quote!(#flatwater::FromSql));
    quote_spanned!(span=> #cell.read::<#of>()?)
}

/// A tuple struct is read by position; skipped fields have none.
fn unnamed(container: &Container, fields: &Fields, bounds: &mut Bounds) -> Result<Steps> {
    if let Some((_, span)) = container.case {
        return Err(Error::new(span, "the fields of a tuple struct have no names"));
    }
    let (mut read, mut count) = (TokenStream::new(), 0_usize);
    for (index, field) in fields.iter().enumerate() {
        let attributes = Field::read(&field.attrs)?;
        attributes.refuse_names()?;
        let value = if attributes.skip {
            default_value(&field.ty, &Default::Trait, bounds)
        } else {
            count += 1;
            let position = count - 1;
            value(&container.path, &quote!(__cells.at(#position)), &field.ty, &attributes, bounds)
        };
        let index = syn::Index::from(index);
        read.extend(quote!(#index: #value,));
    }
    Ok(Steps { find: quote!(__columns.exactly(#count)?;), read })
}
