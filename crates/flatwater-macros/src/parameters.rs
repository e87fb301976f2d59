//! The values of a text's parameters.
//!
//! Owns: which value belongs to which parameter, and the code that binds them. Invariant: each parameter has one value, and each value a
//! parameter. Leaves out: the text.

use flatwater_check::{Kind, Parameter};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Expr, Path, Result};

use crate::input::{Input, Value};

/// The value of each parameter, in order.
fn matched<'a>(input: &'a Input, parameters: &[Parameter]) -> Result<Vec<&'a Expr>> {
    let values = &input.values;
    if values.iter().any(|value| value.name.is_some()) {
        return by_name(input, parameters);
    }
    if values.len() == parameters.len() {
        return Ok(values.iter().map(|value| &value.value).collect());
    }
    let span = values.get(parameters.len()).map_or(input.literal.span(), |value| value.value.span());
    let message = format!("the text has {} and there {}", counted(parameters.len()), are(values.len()));
    Err(Error::new(span, message))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 parameter".to_owned() } else { format!("{count} parameters") }
}

fn are(count: usize) -> String {
    if count == 1 { "is 1 value".to_owned() } else { format!("are {count} values") }
}

fn by_name<'a>(input: &'a Input, parameters: &[Parameter]) -> Result<Vec<&'a Expr>> {
    let known = || parameters.iter().filter_map(|parameter| parameter.name.as_deref()).collect::<Vec<_>>().join(", ");
    let is_of = |parameter: &Parameter, value: &Value| {
        value.name.as_ref().is_some_and(|name| parameter.name.as_deref() == Some(&*name.to_string()))
    };
    for (at, value) in input.values.iter().enumerate() {
        let Some(name) = &value.name else {
            return Err(Error::new(value.value.span(), "give all values by name, or none"));
        };
        if !parameters.iter().any(|parameter| is_of(parameter, value)) {
            return Err(Error::new(name.span(), format!("the text has no parameter `{name}`; it has: {}", known())));
        }
        if input.values[..at].iter().any(|other| other.name.as_ref() == Some(name)) {
            return Err(Error::new(name.span(), format!("`{name}` is given twice")));
        }
    }
    let of = |(at, parameter): (usize, &Parameter)| {
        let value = input.values.iter().find(|value| is_of(parameter, value));
        let name = parameter.name.clone().unwrap_or_else(|| format!("?{}", at + 1));
        value
            .map(|value| &value.value)
            .ok_or_else(|| Error::new(input.literal.span(), format!("the parameter `{name}` has no value")))
    };
    parameters.iter().enumerate().map(of).collect()
}

/// The class that a value must have to be beside such a column; `None` if that is not known.
fn class(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Integer | Kind::Real | Kind::Number | Kind::Boolean => Some("Numbers"),
        Kind::Text => Some("Texts"),
        Kind::Blob => Some("Blobs"),
        _ => None,
    }
}

/// The code of the values, which is evaluated once, as a tuple of references; and what is made of the tuple: checks, and the parameters.
pub(crate) fn code(input: &Input, parameters: &[Parameter]) -> Result<(TokenStream, TokenStream)> {
    let values = matched(input, parameters)?;
    let krate: &Path = &input.krate;
    let given = Ident::new("__given", Span::mixed_site());
    let place = (0..values.len()).map(syn::Index::from);
    let checks = values.iter().zip(parameters).enumerate().filter_map(|(at, (value, parameter))| {
        let class = Ident::new(class(parameter.kind)?, Span::call_site());
        let at = syn::Index::from(at);
        // The error of a value that does not fit stands at the value.
        Some(
            quote_spanned!(value.span()=> (&#krate::__private::Bound(#given.#at)).fits::<#krate::__private::#class>();),
        )
    });
    let parameters = quote! {{
        #[allow(unused_imports)]
        use #krate::__private::{OfAnyClass as _, OfKnownClass as _};
        #(#checks)*
        #krate::params![#(#given.#place),*]
    }};
    Ok((quote!((#(&#values,)*)), parameters))
}
