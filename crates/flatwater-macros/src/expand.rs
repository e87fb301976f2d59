//! The code that the macros make.
//!
//! Owns: the struct of a row, the reading of its columns by position, and the call's value. Invariant: values are evaluated once, before
//! anything else. Leaves out: types (`types`), values (`parameters`).

use std::collections::BTreeMap;

use flatwater_check::{Checked, Label};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Error, Result, Type};

use crate::input::{Input, root};
use crate::{parameters, schemas, types};

/// What a row is read as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// A struct that the macro makes.
    Struct,
    /// A struct of the program.
    Named,
    /// The value of the only column.
    Value,
}

/// A column: its field, and its type, unless that is left to the compiler.
struct Field {
    name: Option<Ident>,
    of: Option<Type>,
}

pub(crate) fn expand(input: &Input, output: Output) -> Result<TokenStream> {
    let failed = |fault: flatwater_check::Fault| Error::new(input.literal.span(), fault.shown(&input.sql));
    let answer =
        schemas::check(&root(), input.database.as_ref().map(syn::LitStr::value), &input.sql).map_err(failed)?;
    let (values, given) = parameters::code(input, &answer.checked.parameters)?;
    let (krate, sql, files) = (&input.krate, &input.sql, &answer.files);
    let file = input.file.as_ref().map(|path| path.to_string_lossy().into_owned());
    let file = file.map(|path| {
        quote!(
            const _: &str = ::core::include_str!(#path);
        )
    });
    let made = if answer.checked.columns.is_empty() {
        if output != Output::Struct {
            return Err(Error::new(input.literal.span(), "the statement returns no rows: use `query!`"));
        }
        quote!(#krate::calls::CheckedExecute::__new(#sql, #given))
    } else {
        let row = row(input, output, &answer.checked, &answer.types)?;
        quote!({ #row #krate::calls::Checked::<__Row>::__new(#sql, #given) })
    };
    let name = Ident::new("__given", Span::mixed_site());
    Ok(quote!(match #values { #name => { #files #file #made } }))
}

/// The type of a row, and how it is read.
fn row(input: &Input, output: Output, checked: &Checked, of: &BTreeMap<String, String>) -> Result<TokenStream> {
    let krate = &input.krate;
    let fields = fields(input, output, checked, of)?;
    let cell = |at: usize| quote!(__cells.at(#at).read());
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    let (made, output, value) = match output {
        Output::Struct => {
            let all: Vec<_> = fields.iter().map(|field| &field.of).collect();
            let cells = (0..fields.len()).map(cell);
            let made = quote! {
                #[derive(Debug)]
                #[allow(non_snake_case, non_camel_case_types, missing_docs, unreachable_pub)]
                pub struct Record { #(pub #names: #all,)* }
            };
            (made, quote!(Record), quote!(::core::result::Result::Ok(Record { #(#names: #cells?,)* })))
        }
        Output::Named => {
            let named = &input.of_type;
            let cells = fields.iter().enumerate().map(|(at, field)| match &field.of {
                Some(of) => quote!(::core::convert::Into::into(__cells.at(#at).read::<#of>()?)),
                None => quote!(__cells.at(#at).read()?),
            });
            (quote!(), quote!(#named), quote!(::core::result::Result::Ok(#named { #(#names: #cells,)* })))
        }
        Output::Value => {
            let of = fields.first().and_then(|field| field.of.as_ref());
            (quote!(), quote!(#of), cell(0))
        }
    };
    let count = fields.len();
    Ok(quote! {
        #made
        struct __Row;
        impl #krate::__private::CheckedRow for __Row {
            type Output = #output;
            const COLUMNS: usize = #count;
            #[allow(clippy::useless_conversion)]
            fn read(__cells: &#krate::__private::Cells<'_>) -> #krate::Result<Self::Output> {
                #value
            }
        }
    })
}

fn fields(input: &Input, output: Output, checked: &Checked, of: &BTreeMap<String, String>) -> Result<Vec<Field>> {
    let span = input.literal.span();
    if output == Output::Value && checked.columns.len() != 1 {
        let message = format!("the statement returns {} columns: use `query!`", checked.columns.len());
        return Err(Error::new(span, message));
    }
    let mut fields: Vec<Field> = Vec::new();
    for column in &checked.columns {
        let label = Label::of(&column.name);
        let of = types::of(column, &label, of, &input.krate, span)?;
        if of.is_none() && output != Output::Named {
            let message = format!("the type of the column {:?} is not known here: `_` is for `query_as!`", label.name);
            return Err(Error::new(span, message));
        }
        let name = if output == Output::Value { None } else { Some(name(label.name, span)?) };
        if name.is_some() && fields.iter().any(|field| field.name == name) {
            let message = format!("two columns are called {}: give one another name with AS", label.name);
            return Err(Error::new(span, message));
        }
        fields.push(Field { name, of });
    }
    Ok(fields)
}

/// The field of a column.
fn name(name: &str, span: Span) -> Result<Ident> {
    let name_of = |text: &str| syn::parse_str::<Ident>(text);
    // A keyword is a raw name.
    let ident = name_of(name).or_else(|_| name_of(&format!("r#{name}")));
    let mut ident = ident.map_err(|_| {
        Error::new(span, format!("the column {name:?} has no name that a field can have: give it one with AS"))
    })?;
    ident.set_span(Span::call_site());
    Ok(ident)
}
