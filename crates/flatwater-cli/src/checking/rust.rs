//! The texts of the macros that check SQL, in sources of Rust.
//!
//! Owns: finding `query!` and its kin, also inside of other macros. Invariant: a file that is no Rust has no texts. Leaves out: calls,
//! whose texts the compiler does not check either.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::{Lit, LitStr};

use super::Text;

const MACROS: [&str; 3] = ["query", "query_as", "query_value"];

pub(super) fn texts(content: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    if let Ok(tokens) = content.parse::<TokenStream>() {
        search(tokens, &mut texts);
    }
    texts
}

fn search(tokens: TokenStream, texts: &mut Vec<Text>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        if at >= 2 && is_macro(&tokens[at - 2], &tokens[at - 1]) {
            texts.extend(of_macro(group));
        }
        search(group.stream(), texts);
    }
}

fn is_macro(name: &TokenTree, mark: &TokenTree) -> bool {
    let is_mark = matches!(mark, TokenTree::Punct(punct) if punct.as_char() == '!');
    is_mark && matches!(name, TokenTree::Ident(name) if MACROS.iter().any(|known| name == known))
}

/// The literals with `+` between them, behind settings and a type. A literal behind `database =` is no part of them.
fn of_macro(group: &Group) -> Option<Text> {
    if group.delimiter() == Delimiter::None {
        return None;
    }
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let is = |at: usize, mark| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    let first = (0..tokens.len()).find(|at| literal(&tokens[*at]).is_some() && (*at == 0 || is(at - 1, ',')))?;
    let mut text = Text::new();
    let database = (0..first).find(|at| matches!(&tokens[*at], TokenTree::Ident(name) if name == "database"));
    text.database = database.and_then(|at| literal(tokens.get(at + 2)?)).map(|literal| literal.value());
    let mut at = first;
    while let Some(part) = tokens.get(at).and_then(literal) {
        let range = part.span().byte_range();
        let written = part.token().to_string();
        // Up to the quote: `"` or `r#"`.
        let begin = range.start + written.find('"').map_or(0, |quote| quote + 1);
        text.push(&part.value(), begin);
        if !is(at + 1, '+') {
            break;
        }
        at += 2;
    }
    Some(text)
}

fn literal(token: &TokenTree) -> Option<LitStr> {
    let TokenTree::Literal(literal) = token else { return None };
    match Lit::new(literal.clone()) {
        Lit::Str(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_macros_are_found_with_their_places() {
        let source = r##"
            fn f() {
                let a = query!("SELECT 1 " + r#"FROM "t""#, 1);
                join!(flatwater::query_as!(User, "SELECT 2"), other!("no"));
                query_value!(crate = db, database = "audit", "SELECT 3", "no");
            }
        "##;
        let texts = texts(source);
        let all: Vec<&str> = texts.iter().map(|text| &*text.sql).collect();
        assert_eq!(all, ["SELECT 1 FROM \"t\"", "SELECT 2", "SELECT 3"]);
        assert_eq!(texts[2].database.as_deref(), Some("audit"));
        assert!(
            source[texts[0].in_file(9)..].starts_with("FROM \"t\"") && source[texts[1].in_file(7)..].starts_with("2\"")
        );
        assert_eq!(super::texts("not ( rust"), []);
    }
}
