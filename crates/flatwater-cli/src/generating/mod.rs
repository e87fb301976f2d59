//! Typed functions made of files of SQL, and types of tables.
//!
//! Owns: the names of what is made. Invariants: all languages are made of the same answers; the same sources make the same bytes. Leaves
//! out: each language (a file each), reading the annotations (`queries`).

mod kysely;
mod python;
pub(crate) mod queries;
mod rust;
mod typescript;

use flatwater_check::{Kind, Parameter};

pub(crate) use kysely::kysely;
pub(crate) use python::python;
pub(crate) use rust::rust;
pub(crate) use typescript::typescript;

/// The first line of each file that is made.
const HEAD: &str = "Made by `flatwater types`. Changes are lost: change the SQL.";

/// The words of a name: `GetUser`, `get_user` and `get-user` are two.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_new = true;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            is_new = true;
            continue;
        }
        if is_new || c.is_uppercase() {
            words.push(String::new());
        }
        is_new = false;
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

fn snake(name: &str) -> String {
    words(name).join("_")
}

fn pascal(name: &str) -> String {
    let upper = |word: String| word[..1].to_uppercase() + &word[1..];
    words(name).into_iter().map(upper).collect()
}

fn camel(name: &str) -> String {
    let name = pascal(name);
    name[..1].to_lowercase() + &name[1..]
}

/// The names of parameters: their own, else that of the column beside each, else a number.
fn names_of(parameters: &[Parameter]) -> Vec<String> {
    let own = |parameter: &Parameter| parameter.name.clone().or_else(|| Some(parameter.origin.as_ref()?.1.clone()));
    let all: Vec<Option<String>> = parameters.iter().map(|it| own(it).map(|name| snake(&name))).collect();
    let is_unique = |name: &String| all.iter().flatten().filter(|other| *other == name).count() == 1;
    let name = |(at, name): (usize, &Option<String>)| match name {
        // The first argument is called so.
        Some(name) if name == "on" => "on_".to_owned(),
        Some(name) if is_unique(name) => name.clone(),
        _ => format!("arg{}", at + 1),
    };
    all.iter().enumerate().map(name).collect()
}

/// Whether values are given by name: if all parameters have one.
fn is_named(parameters: &[Parameter]) -> bool {
    !parameters.is_empty() && parameters.iter().all(|parameter| parameter.name.is_some())
}

/// The type of a column in a language, by the kind.
type TypeOf = fn(Kind, bool) -> &'static str;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_each_language_writes_it() {
        for name in ["GetUser", "getUser", "get_user", "get-user"] {
            assert_eq!((&*snake(name), &*pascal(name), &*camel(name)), ("get_user", "GetUser", "getUser"), "{name}");
        }
    }
}
