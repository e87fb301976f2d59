//! The bounds of an implementation for a generic type.
//!
//! Owns: collecting them. Invariant: only types that mention a type parameter get a bound, so that a type that lacks an
//! implementation is an error where its field stands. Leaves out: which bounds a field needs.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Generics, WherePredicate, parse_quote};

/// The generics of a type, with the bounds of its implementation.
pub(crate) struct Bounds {
    pub(crate) generics: Generics,
    parameters: Vec<String>,
}

impl Bounds {
    pub(crate) fn new(generics: &Generics) -> Self {
        let parameters = generics.type_params().map(|parameter| parameter.ident.to_string()).collect();
        Self { generics: generics.clone(), parameters }
    }

    /// Adds `of: bound`.
    pub(crate) fn add(&mut self, of: &impl ToTokens, bound: &TokenStream) {
        let of = of.to_token_stream();
        if self.is_generic(of.clone()) {
            let predicate: WherePredicate = parse_quote!(#of: #bound);
            self.generics.make_where_clause().predicates.push(predicate);
        }
    }

    fn is_generic(&self, tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(name) => self.parameters.iter().any(|parameter| name == parameter),
            TokenTree::Group(group) => self.is_generic(group.stream()),
            _ => false,
        })
    }
}
