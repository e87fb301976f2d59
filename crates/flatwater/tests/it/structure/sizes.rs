//! Checks the structure of the sources: no folder has more files than one can look through, and the engine grows no larger.
//!
//! Every number here is a bound that only becomes smaller: what is below its bound fails as well, and says so.

use std::collections::BTreeMap;
use std::path::Path;

use super::floors::{before_tests, code, engine, sources, src_of};

/// The number of files that stand beside each other in one folder.
const FILES: usize = 25;

/// The trees whose folders are counted.
const TREES: [&str; 6] = ["crates", "conformance", "lab/src", "node/src", "python/src", "torture"];

/// A number of something, and how far below that it may be.
type Bound = (usize, usize);

/// The crates of the engine: the lines of code without comments and tests, and the files.
const SIZES: [(&str, Bound, Bound); 3] = [
    ("flatwater", (27_370, 100), (224, 2)),
    ("flatwater-base", (4_975, 100), (43, 2)),
    ("flatwater-sql", (2_600, 100), (22, 1)),
];

/// The kinds of work of a request, and the files that name one.
const KINDS: Bound = (21, 0);
const FILES_WITH_A_KIND: Bound = (20, 0);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// What is wrong with a number of something, if it may be `most`, and `slack` less.
pub(crate) fn fault(what: &str, number: usize, (most, slack): Bound) -> Option<String> {
    match number {
        _ if number > most => Some(format!("{what}: {number}, and may be {most}")),
        _ if number + slack < most => Some(format!("{what}: {number}, which is below {most}: lower the bound")),
        _ => None,
    }
}

#[test]
fn no_folder_has_more_files_than_one_can_look_through() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for file in TREES.iter().flat_map(|tree| sources(&root().join(tree))) {
        let folder = file.parent().unwrap().strip_prefix(root()).unwrap();
        *folders.entry(folder.to_str().unwrap().replace('\\', "/")).or_default() += 1;
    }
    assert!(folders.len() > 40, "only {} folders were seen", folders.len());
    let faults = folders.iter().filter_map(|(folder, files)| fault(folder, *files, (FILES, FILES)));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "files in one folder: {faults:#?}");
}

/// The number of lines with code, without modules of tests.
pub(crate) fn lines(text: &str) -> usize {
    let has_code = |line: &&str| !line.trim_start().starts_with("//") && !line.trim().is_empty();
    let mut rest = text.lines().filter(has_code);
    let (mut count, mut for_tests) = (0, false);
    while let Some(line) = rest.next() {
        let code = line.trim_start();
        let is_module = ["mod ", "pub(crate) mod ", "pub(super) mod "].iter().any(|head| code.starts_with(head));
        if for_tests && is_module && code.ends_with('{') {
            let end = format!("{}}}", &line[..line.len() - code.len()]);
            assert!(rest.any(|line| line == end), "a module of tests has no end: {line}");
        } else {
            count += 1;
        }
        for_tests =
            code.starts_with("#[cfg(test") || code.starts_with("#[cfg(all(test") || for_tests && code.starts_with("#[");
    }
    count
}

#[test]
fn the_engine_grows_no_larger() {
    let is_for_tests = |file: &&std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_str().unwrap();
        name == "tests" || name.ends_with("_tests")
    };
    let mut faults = Vec::new();
    for (name, most_lines, most_files) in SIZES {
        let files = sources(&src_of(name));
        let files: Vec<_> = files.iter().filter(|file| !is_for_tests(file)).collect();
        let code = files.iter().map(|file| lines(&std::fs::read_to_string(file).unwrap())).sum();
        faults.extend(fault(&format!("lines of code of {name}"), code, most_lines));
        faults.extend(fault(&format!("files of {name}"), files.len(), most_files));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn the_kinds_of_work_are_few_and_named_in_few_files() {
    let src = src_of("flatwater");
    let list = std::fs::read_to_string(src.join("workers/work.rs")).unwrap();
    let (_, list) = list.split_once("pub(crate) enum Work {\n").unwrap();
    let list = list.split_once("\n}\n").unwrap().0;
    let begins_kind = |line: &&str| line.starts_with("    ") && line[4..].starts_with(|c: char| c.is_ascii_uppercase());
    let kinds = list.lines().filter(begins_kind).count();
    let names_kind = |text: &str| {
        text.match_indices("Work::").any(|(at, name)| {
            let is_word = !text[..at].ends_with(|c: char| c.is_alphanumeric());
            is_word && text[at + name.len()..].starts_with(|c: char| c.is_ascii_uppercase())
        })
    };
    let files = sources(&src).into_iter().filter(|file| names_kind(&code(&std::fs::read_to_string(file).unwrap())));
    let faults = [fault("kinds of work", kinds, KINDS), fault("files that name one", files.count(), FILES_WITH_A_KIND)];
    assert_eq!(faults, [None, None]);
}

#[test]
fn lines_are_counted_without_comments_and_tests() {
    let text = "
//! A head.
use a; // one

#[cfg(test)]
fn two_lines() {}
#[cfg(test)]
#[path = \"x.rs\"]
mod three_lines;
mod inside {
    #[cfg(all(test, unix))]
    pub(super) mod tests {
        fn not_counted() {
        }
    }
}
";
    // The attributes of modules of tests are counted.
    assert_eq!(lines(text), 9);
    assert_eq!(fault("x", 3, (2, 0)).as_deref(), Some("x: 3, and may be 2"));
    assert_eq!(fault("x", 1, (5, 3)).as_deref(), Some("x: 1, which is below 5: lower the bound"));
    assert_eq!([fault("x", 2, (2, 0)), fault("x", 2, (5, 3))], [None, None]);
}

/// The lines of a function that one can see whole.
const FUNCTION: usize = 60;

#[test]
fn no_function_is_longer_than_one_can_see() {
    let (mut longer, mut functions) = (Vec::new(), 0);
    for (_, file) in engine() {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = before_tests(&text).lines().collect();
        for (at, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let head = code.strip_prefix("pub(crate) ").or(code.strip_prefix("pub ")).unwrap_or(code);
            let head =
                ["const ", "async ", "unsafe "].iter().fold(head, |head, word| head.strip_prefix(word).unwrap_or(head));
            if !head.starts_with("fn ") || code.ends_with(['}', ';']) {
                continue;
            }
            functions += 1;
            let indent = &line[..line.len() - code.len()];
            let ends = [format!("{indent}}}"), format!("{indent});")];
            let length =
                lines[at..].iter().position(|line| ends.iter().any(|end| line == end)).map_or(0, |end| end + 1);
            if length > FUNCTION {
                longer.push(format!("{}: {code} {length} lines", file.display()));
            }
        }
    }
    assert!(functions > 2_000, "only {functions} functions were seen");
    assert!(longer.is_empty(), "{longer:#?}");
}

#[test]
fn a_kept_connection_has_one_inbox_and_one_list_of_ends() {
    let workers = src_of("flatwater").join("workers");
    let texts = sources(&workers).into_iter().map(|file| std::fs::read_to_string(file).unwrap()).collect::<String>();
    for kind in ["struct Inbox<", "enum End {", "enum Message<"] {
        assert_eq!(texts.matches(kind).count(), 1, "{kind}");
    }
    for kind in ["struct Inbox {", "enum Message {"] {
        assert_eq!(texts.matches(kind).count(), 0, "{kind}");
    }
}
