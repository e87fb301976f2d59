//! Checks the pages against the sources: everything that a page names must exist.
//!
//! Owns: the tests that the design names, the files of the code map, the links between pages, the pages of the book, and
//! which pages have their code compiled. Leaves out: whether the sentences are true, which only a reader can check; links
//! to other sites.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path, ending),
            false if path.to_string_lossy().ends_with(ending) => vec![path],
            false => Vec::new(),
        })
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), ".md");
    pages.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root().join(page)));
    pages
}

/// Returns the text between backticks, outside of code blocks.
fn quoted(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// Returns true for a name that looks like a test: test names state a fact and have at least four words. Names with two underscores
/// in front are Python's, those that begin with `sqlite3_` are SQLite's, and those with `cipher_` are SQLCipher's settings.
fn is_test_name(word: &str) -> bool {
    let is_name = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    let is_of_others = ["__", "sqlite3_", "cipher_"].iter().any(|start| word.starts_with(start));
    is_name && !is_of_others && word.matches('_').count() >= 3
}

#[test]
fn no_page_has_the_marks_of_a_merge_that_was_not_finished() {
    let of_lab =
        files(&root().join("lab"), ".md").into_iter().filter(|page| !page.to_string_lossy().contains("/.venv/"));
    for page in pages().into_iter().chain(of_lab) {
        let text = read(&page);
        let mark = text.lines().find(|line| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark)));
        assert!(mark.is_none(), "{}: {mark:?}", page.display());
    }
}

#[test]
fn every_test_that_a_page_names_exists() {
    let of_rust = files(&root().join("crates"), ".rs");
    let of_python = files(&root().join("python/tests"), ".py");
    let sources: String = of_rust.iter().chain(&of_python).map(|file| read(file)).collect();
    let mut checked = 0;
    for page in pages() {
        for name in quoted(&read(&page)).into_iter().filter(|word| is_test_name(word)) {
            let is_there = ["fn", "def"].iter().any(|word| sources.contains(&format!("{word} {name}(")));
            assert!(is_there, "{} names {name}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} tests are named");
}

#[test]
fn every_source_that_a_page_names_by_its_path_exists() {
    let trees = ["conformance", "crates", "lab/src", "node/src", "python/src", "torture"]
        .map(|tree| files(&root().join(tree), ".rs"));
    let sources: Vec<String> = trees.iter().flatten().map(|file| path_of(file)).collect();
    let mut checked = 0;
    for page in pages() {
        for name in quoted(&read(&page)).into_iter().filter(|word| word.contains('/') && word.ends_with(".rs")) {
            let is_it = |source: &String| source.ends_with(&format!("/{name}"));
            let is_there = sources.iter().any(is_it) || root().join(name).exists();
            assert!(is_there, "{} names {name}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} sources are named");
}

fn path_of(file: &Path) -> String {
    file.to_string_lossy().replace('\\', "/")
}

#[test]
fn the_code_map_has_every_folder_and_no_other() {
    for name in ["flatwater", "flatwater-base", "flatwater-sql"] {
        the_code_map_is_that_of(name);
    }
}

fn the_code_map_is_that_of(name: &str) {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (_, map) = page.split_once(&format!("| folder of `crates/{name}/src` | owns |")).expect("the map");
    let rows = map.lines().skip(2).take_while(|line| line.starts_with('|'));
    let named: BTreeSet<String> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    let source = root().join("crates").join(name).join("src");
    let below = |file: &Path| {
        let below = file.strip_prefix(&source).expect("it is below").to_string_lossy().replace('\\', "/");
        below.rsplit_once('/').map_or(below.clone(), |(folder, _)| folder.to_owned())
    };
    // A folder inside of one that is no worker belongs to the room around it.
    let room = |folder: String| match folder.split_once('/') {
        Some((outer, _)) if outer != "workers" => outer.to_owned(),
        Some((outer, inner)) => format!("{outer}/{}", inner.split('/').next().unwrap_or_default()),
        None => folder,
    };
    let there: BTreeSet<String> = files(&source, ".rs").iter().map(|file| room(below(file))).collect();
    let there: BTreeSet<String> = there.into_iter().filter(|name| name != "lib.rs").collect();
    assert_eq!(named, there, "the map of ARCHITECTURE.md, and the folders");
}

/// Returns the text without its code blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the targets of the links that lead to no other site.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.starts_with("http")).map(str::to_owned).collect()
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut checked = 0;
    for page in pages() {
        for target in links(&read(&page)) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let file =
                if file.is_empty() { page.clone() } else { page.parent().expect("a page has a folder").join(file) };
            assert!(file.exists(), "{} links to {target}", page.display());
            assert!(heading.is_empty() || has_heading(&read(&file), heading), "{} links to {target}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} links");
}

fn has_heading(text: &str, anchor: &str) -> bool {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.into_iter().any(|heading| {
        let plain: String =
            heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect();
        plain.replace(' ', "-") == anchor
    })
}

#[test]
fn every_page_is_in_the_book_once() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let mut listed: Vec<_> = links(&read(&summary)).iter().map(|page| docs.join(page)).collect();
    let mut pages = files(&docs, ".md");
    pages.retain(|page| *page != summary);
    listed.sort();
    pages.sort();
    assert_eq!(listed, pages);
}

#[test]
fn the_code_of_every_page_of_the_guide_is_compiled() {
    let compiled = include_str!("../src/lib.rs");
    for page in files(&root().join("docs/guide"), ".md").iter().filter(|page| read(page).contains("```rust")) {
        let name = page.file_name().expect("a page has a name").to_string_lossy();
        assert!(compiled.contains(&format!("docs/guide/{name}\"")), "add {name} to examples/rust/src/lib.rs");
    }
}
