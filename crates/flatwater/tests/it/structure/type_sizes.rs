//! Checks the structure of the sources: no type has more methods than one can keep in mind, however many files they
//! stand in.

use std::collections::BTreeMap;
use std::path::Path;

use super::floors::{code, module, sources, src_of};

/// The number of methods of one type, private ones included, those of traits not.
const METHODS: usize = 25;

/// The types of the engine that have more, each with its folder and the number that it may have. A number here only
/// becomes smaller.
const LARGER: &[(&str, &str, usize)] = &[("api", "Database", 30)];

/// A type: the module that defines it, and its name.
type Type = (Vec<String>, String);

/// Returns the name of the type that this line defines.
fn defined(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let is_type = words.next().is_some_and(|word| ["struct", "enum", "union"].contains(&word));
    words.next().filter(|_| is_type).map(|rest| identifier(rest).to_owned())
}

fn identifier(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// Returns the name of the type whose methods follow this head of an `impl` block; `None` for those of a trait.
fn implemented(head: &str) -> Option<&str> {
    let mut rest = head.trim_start().strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        rest = &rest[end? + 1..];
    } else if !rest.starts_with(' ') {
        return None;
    }
    let of = rest.split(" where ").next().unwrap();
    let path = of.trim_start().split(['<', ' ']).next().unwrap();
    path.rsplit("::").next().filter(|_| !of.contains(" for "))
}

/// Returns true if this line begins a function.
fn begins_function(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| {
        let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
        rest.trim_start()
    });
    let mut words = line
        .split_whitespace()
        .skip_while(|word| ["const", "async", "unsafe", "extern"].contains(word) || word.starts_with('"'));
    words.next() == Some("fn")
}

/// Returns how many methods a file adds to each type, by the names of the types. Reads what rustfmt has written.
fn methods(text: &str) -> Vec<(String, usize)> {
    let code = code(text);
    let mut lines = code.lines();
    let mut found = Vec::new();
    let mut before = "";
    while let Some(line) = lines.next() {
        let is_test = before.trim() == "#[cfg(test)]";
        before = line;
        let indent = &line[..line.len() - line.trim_start().len()];
        if !["impl ", "impl<"].iter().any(|begin| line[indent.len()..].starts_with(begin)) || is_test {
            continue;
        }
        let mut head = line.to_owned();
        while !head.contains('{') {
            let Some(more) = lines.next() else { break };
            head = format!("{head} {}", more.trim());
        }
        let Some(name) = implemented(&head).filter(|_| !head.ends_with('}')) else { continue };
        let (last, method) = (format!("{indent}}}"), format!("{indent}    "));
        let mut methods = 0;
        for line in lines.by_ref().take_while(|line| *line != last) {
            let is_method = line.strip_prefix(&method).is_some_and(|line| !line.starts_with(' '));
            methods += usize::from(is_method && begins_function(line) && before.trim() != "#[cfg(test)]");
            before = line;
        }
        found.push((name.to_owned(), methods));
    }
    found
}

/// Returns the number of methods of each type of a crate. Two types of one name are told apart by where they are defined:
/// an `impl` block belongs to the nearest.
fn by_type(src: &Path) -> BTreeMap<Type, usize> {
    let files: Vec<(Vec<String>, String)> =
        sources(src).iter().map(|file| (module(src, file), std::fs::read_to_string(file).unwrap())).collect();
    let mut definitions: BTreeMap<String, Vec<&[String]>> = BTreeMap::new();
    for (module, text) in &files {
        for name in code(text).lines().filter_map(defined) {
            definitions.entry(name).or_default().push(module);
        }
    }
    let mut types = BTreeMap::new();
    for (module, text) in &files {
        for (name, methods) in methods(text) {
            let shared = |other: &&&[String]| module.iter().zip(other.iter()).take_while(|(a, b)| a == b).count();
            let nearest = definitions.get(&name).and_then(|all| all.iter().max_by_key(shared));
            *types.entry((nearest.map_or(module.clone(), |found| found.to_vec()), name)).or_default() += methods;
        }
    }
    types
}

#[test]
fn no_type_has_more_methods_than_one_can_keep_in_mind() {
    let mut faults = Vec::new();
    let mut exceptions = LARGER.to_vec();
    for (crate_name, may_be_larger) in
        [("flatwater", true), ("flatwater-base", true), ("flatwater-sql", false), ("flatwater-sqlite", false)]
    {
        let types = by_type(&src_of(crate_name));
        assert!(types.len() > 20, "only {} types of {crate_name} were seen", types.len());
        for ((module, name), methods) in types.into_iter().filter(|(_, methods)| *methods > METHODS) {
            let module = module.join("::");
            let is_it = |(folder, of, _): &(&str, &str, usize)| module.starts_with(folder) && *of == name;
            let known = exceptions.iter().position(is_it).filter(|_| may_be_larger);
            let most = known.map_or(METHODS, |known| exceptions.swap_remove(known).2);
            if methods > most {
                faults.push(format!("{name} in {crate_name}, {module}, has {methods} methods, and may have {most}"));
            }
        }
    }
    faults.extend(exceptions.iter().map(|(folder, name, _)| format!("{name} in {folder} is no exception any more")));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn methods_are_counted_in_each_form_of_their_blocks() {
    let text = "
impl<'a, T: Into<Option<u8>>> a::Of<'a, T> {
    pub(crate) const unsafe extern \"C\" fn one() {
        fn inner() {}
    }

    const NUMBER: fn() = two;
    #[cfg(test)]
    fn tested() {}
    async fn two() {}
}
impl<T> Long
where
    T: for<'a> Fn(&'a u8),
{
    fn three() {}
}
impl Drop for Of {
    fn drop(&mut self) {}
}
#[cfg(test)]
impl Of {
    fn four() {}
}
mod inside {
    impl Of {
        fn five() {}
    }
}
";
    let expected = [("Of", 2), ("Long", 1), ("Of", 1)];
    assert_eq!(methods(text), expected.map(|(name, methods)| (name.to_owned(), methods)));
    assert_eq!(defined("pub(crate) struct Of<T> {").as_deref(), Some("Of"));
    assert_eq!(defined("enum Flow {").as_deref(), Some("Flow"));
    assert_eq!(defined("let structure = 1;"), None);
}
