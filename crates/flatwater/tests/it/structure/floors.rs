//! Checks the structure of the sources: a file imports from lower floors only, and files from each other in no circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use flatwater::bindings::Name;

/// The crates of the engine: `flatwater` and those with its lower floors.
pub(crate) const ENGINE: [&str; 3] = ["flatwater", "flatwater-base", "flatwater-sql"];

/// The rooms of `flatwater-sql` that are folders. Its files are the room `sql`.
const FOLDERS_OF_SQL: [&str; 2] = ["bytecode", "dependencies"];

/// The floors of the engine, lowest first. Rooms of the same floor do not import each other.
const FLOORS: &[&[&str]] = &[
    &["growth_counter"],
    &["busy_handler", "dependencies", "error", "inline", "bytecode", "thread"],
    &["events", "migrations"],
    &["sql", "time", "values"],
    &["encode"],
    &["options"],
    &["connection", "file", "lease", "queue", "stats"],
    &["turnstile"],
    &["workers"],
    &["engine"],
    &["api"],
    &["bindings", "growth_tests"],
    &["lib"],
];

fn floor(room: &str) -> usize {
    FLOORS.iter().position(|rooms| rooms.contains(&room)).unwrap_or_else(|| panic!("{room} has no floor"))
}

pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(&path),
            false if path.extension().is_some_and(|end| end == "rs") => vec![path],
            false => Vec::new(),
        })
        .collect()
}

/// Returns the module of a file: its folders and its name.
pub(crate) fn module(src: &Path, file: &Path) -> Vec<String> {
    let below = file.strip_prefix(src).unwrap().with_extension("");
    let mut parts: Vec<_> = below.components().map(|part| part.as_os_str().to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

pub(crate) fn src_of(crate_name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(crate_name).join("src")
}

/// Returns the files of the engine, each with its module: that of its crate, and those of `flatwater-sql` in the room `sql`.
pub(crate) fn engine() -> Vec<(Vec<String>, PathBuf)> {
    let of_crate = |name: &str| {
        let src = src_of(name);
        let placed = |file: PathBuf| (placed(name, module(&src, &file)), file);
        sources(&src).into_iter().map(placed).collect::<Vec<_>>()
    };
    ENGINE.into_iter().flat_map(of_crate).collect()
}

/// Returns the path of a module among those of the engine.
fn placed(crate_name: &str, path: Vec<String>) -> Vec<String> {
    let is_of_sql = |first: &str| first != "lib" && !FOLDERS_OF_SQL.contains(&first);
    match path.first() {
        Some(first) if crate_name == "flatwater-sql" && is_of_sql(first) => [vec!["sql".to_owned()], path].concat(),
        _ => path,
    }
}

/// Returns a file without its tests. An item for tests may stand before them.
pub(crate) fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap().split("#[cfg(all(test").next().unwrap()
}

/// Returns the code of a file, without comments and tests.
pub(crate) fn code(text: &str) -> String {
    let lines = before_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the paths that begin at `rest`, such as `a::{b, c::D}`: the first names of each.
fn paths(rest: &str) -> Vec<Vec<String>> {
    let name = rest.trim_start();
    if let Some(group) = name.strip_prefix('{') {
        let mut depth = 0;
        let end = group.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth < 0
        });
        let mut members = vec![String::new()];
        for c in group[..end.expect("a group ends")].chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            match c {
                // The end of the group was one level below.
                ',' if depth == -1 => members.push(String::new()),
                c => members.last_mut().unwrap().push(c),
            }
        }
        return members.iter().filter(|member| !member.trim().is_empty()).flat_map(|member| paths(member)).collect();
    }
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    let (first, rest) = name.split_at(end);
    let below = rest.strip_prefix("::").map_or_else(|| vec![Vec::new()], paths);
    below.into_iter().map(|below| [vec![first.to_owned()], below].concat()).collect()
}

/// Returns the imports of a file, as paths from the root: `crate::` and `super::`, at any place, including groups.
pub(crate) fn imports(module: &[String], text: &str) -> Vec<Vec<String>> {
    let code = code(text);
    let begins = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c));
    let absolute = code
        .match_indices("crate::")
        .filter(|(at, _)| begins(*at))
        .flat_map(|(at, root)| paths(&code[at + root.len()..]));
    let relative = code.match_indices("super::").filter(|(at, _)| begins(*at)).flat_map(|(at, _)| {
        paths(&code[at..]).into_iter().map(|path| {
            let up = path.iter().take_while(|part| *part == "super").count();
            [&module[..module.len() - up], &path[up..]].concat()
        })
    });
    absolute.chain(relative).collect()
}

/// Returns what a file of the engine imports from it: from its own crate, and from those below.
pub(crate) fn imports_from_engine(module: &[String], file: &Path, text: &str) -> Vec<Vec<String>> {
    let own = ENGINE.into_iter().find(|name| file.starts_with(src_of(name))).unwrap();
    let in_own = &module[usize::from(own == "flatwater-sql" && module[0] == "sql")..];
    let of_own = imports(in_own, text).into_iter().map(|path| placed(own, path));
    let code = code(text);
    let of_others = ENGINE.into_iter().skip(1).flat_map(|name| {
        let root = format!("{}::", name.replace('-', "_"));
        let named = code.match_indices(&root).filter(|(at, _)| !code[..*at].ends_with([':', '_']));
        let named = named.flat_map(|(at, root)| paths(&code[at + root.len()..])).collect::<Vec<_>>();
        named.into_iter().map(move |path| placed(name, path))
    });
    of_own.chain(of_others).filter(|path| !path.is_empty()).collect()
}

/// Returns the modules of the names that the root exports.
fn exported(src: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(src.join("lib.rs")).unwrap();
    let code = code(&text);
    let exports = code.match_indices("pub use ").flat_map(|(at, found)| paths(&code[at + found.len()..]));
    let room = |path: &[String]| path[usize::from(path[0].starts_with("flatwater_"))].clone();
    let exports = exports.filter(|path| path.len() > 1 && path[0] != "crate");
    exports.map(|path| (path.last().unwrap().clone(), room(&path))).collect()
}

/// The floors of `workers`, lowest first: the workers, and how the writer's connection is used. Rooms of one floor do not import
/// each other. What is on no floor is shared by them and their callers.
const WORKERS: &[&[&str]] = &[
    &["checkpoint", "live", "readers", "writer"],
    &["perform"],
    &["short", "exclusive"],
    &["own_connections"],
    &["rounds"],
];

fn floor_of_worker(room: &str) -> Option<usize> {
    WORKERS.iter().position(|rooms| rooms.contains(&room))
}

#[test]
fn a_file_imports_from_lower_floors_only() {
    let exported = exported(&src_of("flatwater"));
    assert_eq!(exported.get("Error").map(String::as_str), Some("error"));
    let mut checked = 0;
    let mut faults = Vec::new();
    for (module, file) in engine() {
        let text = std::fs::read_to_string(&file).unwrap();
        for mut path in imports_from_engine(&module, &file, &text) {
            if ["params", "named", "hint", "hint_part"].contains(&&*path[0]) {
                continue;
            }
            if let Some(room) = exported.get(&path[0]) {
                path = vec![room.clone()];
            }
            checked += 1;
            let same_room = module[0] == path[0];
            let upward = match same_room {
                // The head of the workers has the rights that are answers.
                true if module[0] == "workers" && module.len() > 1 && path.get(1) != Some(&module[1]) => {
                    let to = path.get(1).and_then(|room| floor_of_worker(room));
                    to.is_some() && to >= floor_of_worker(&module[1])
                }
                true => false,
                false => floor(&path[0]) >= floor(&module[0]),
            };
            if upward {
                faults.push(format!("{} imports {}", file.display(), path.join("::")));
            }
        }
    }
    assert!(checked > 500, "only {checked} imports were seen: the test no longer reads the sources");
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The modules that each module imports from: those that are files.
fn graph(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<String, String> = sources(src)
        .iter()
        .map(|file| (module(src, file).join("::"), std::fs::read_to_string(file).unwrap()))
        .filter(|(name, _)| name != "lib")
        .collect();
    let file_of = |path: &[String]| {
        let ends = (1..=path.len()).rev().map(|end| path[..end].join("::"));
        ends.into_iter().find(|name| files.contains_key(name))
    };
    let mut graph = BTreeMap::new();
    for (name, text) in &files {
        let module: Vec<String> = name.split("::").map(str::to_owned).collect();
        let mut to: Vec<Vec<String>> = imports(&module, text);
        // The head of a folder names its files without `self`.
        to.extend(code(text).match_indices("use ").flat_map(|(at, found)| {
            paths(&code(text)[at + found.len()..]).into_iter().map(|path| [module.clone(), path].concat())
        }));
        // A file may use the head of its folder, which is the folder's front.
        let is_own_head = |to: &String| name == to || name.starts_with(&format!("{to}::"));
        let to = to.iter().filter_map(|path| file_of(path)).filter(|to| !is_own_head(to)).collect();
        graph.insert(name.clone(), to);
    }
    graph
}

/// The modules that import from themselves by way of others.
fn in_circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reaches_itself = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = graph[start].iter().collect();
        while let Some(name) = next.pop() {
            if name == start {
                return true;
            }
            if seen.insert(name) {
                next.extend(graph.get(name).into_iter().flatten());
            }
        }
        false
    };
    graph.keys().filter(|name| reaches_itself(name)).cloned().collect()
}

#[test]
fn files_import_from_each_other_in_no_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let trees = [
        "flatwater",
        "flatwater-base",
        "flatwater-sql",
        "flatwater-sqlite",
        "flatwater-bridge",
        "flatwater-derive",
        "flatwater-check",
        "flatwater-macros",
        "flatwater-remote",
        "flatwater-move",
        "flatwater-cli",
        "flatwater-telemetry",
        "../python",
        "../node",
        "../demo",
        "../lab",
        "../torture",
        "../conformance/rust",
        "../conformance/rqlite-double",
    ];
    let mut all = Vec::new();
    for tree in trees {
        let graph = graph(&crates.join(tree).join("src"));
        assert!(graph.values().any(|to| !to.is_empty()), "{tree}: the test does not see imports");
        let found = in_circles(&graph);
        all.extend(found.into_iter().map(|module| format!("{tree}: {module}")));
    }
    assert!(all.is_empty(), "files that are in a circle: {all:#?}");
}

#[test]
fn a_circle_of_files_is_seen() {
    let graph = |edges: &[(&str, &[&str])]| -> BTreeMap<String, BTreeSet<String>> {
        let edge = |(from, to): &(&str, &[&str])| ((*from).to_owned(), to.iter().map(|to| (*to).to_owned()).collect());
        edges.iter().map(edge).collect()
    };
    let circle = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["a"])]);
    assert_eq!(in_circles(&circle).into_iter().collect::<Vec<_>>(), ["b", "c"]);
    assert!(in_circles(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
}

#[test]
fn an_import_is_seen_in_each_of_its_forms() {
    let module = ["workers".to_owned(), "readers".to_owned(), "leases".to_owned()];
    let seen = |text: &str| imports(&module, text).iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(seen("use crate::{Error, types::{row::Row, time}};"), ["Error", "types::row::Row", "types::time"]);
    assert_eq!(seen("use super::super::request::Work;"), ["workers::request::Work"]);
    assert_eq!(
        seen("fn f() -> super::Shared { crate::call::Call::new() }"),
        ["call::Call::new", "workers::readers::Shared"]
    );
    assert_eq!(seen("// crate::call\n$crate::call; #[cfg(test)]\nmod tests { use crate::call; }"), [""; 0]);
}

#[test]
fn every_file_says_what_it_owns_and_stays_small() {
    let mut faults = Vec::new();
    for crate_name in
        ENGINE.into_iter().chain(["flatwater-check", "flatwater-derive", "flatwater-macros", "flatwater-sqlite"])
    {
        for file in sources(&src_of(crate_name)) {
            let text = std::fs::read_to_string(&file).unwrap();
            if !text.starts_with("//! ") {
                faults.push(format!("{} has no head", file.display()));
            }
            let lines = before_tests(&text).lines().count();
            if lines > 350 {
                faults.push(format!("{} has {lines} lines before its tests", file.display()));
            }
            if let Some(at) = text.find(|c: char| !c.is_ascii()) {
                let line = text[..at].lines().count();
                if !text[at..].starts_with('é') {
                    faults.push(format!("{}:{line} is not ASCII", file.display()));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The compiler reports no unused function of a crate that another one uses.
#[test]
fn every_function_of_the_lower_crates_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let users = ["crates", "conformance/rust", "python/src", "node/src"].map(|folder| sources(&root.join(folder)));
    let texts = users.iter().flatten().map(|file| code(&std::fs::read_to_string(file).unwrap()));
    let texts: Vec<String> = texts.collect();
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    for name in texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_')) {
        *uses.entry(name).or_default() += 1;
    }
    let lower = engine().into_iter().filter(|(_, file)| !file.starts_with(src_of("flatwater")));
    let (mut seen, mut unused) = (0, Vec::new());
    for (_, file) in lower {
        let text = code(&std::fs::read_to_string(&file).unwrap());
        for (at, head) in text.match_indices("pub fn ") {
            let name = text[at + head.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            seen += 1;
            if uses[name] < 2 {
                unused.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(seen > 200, "only {seen} functions were seen");
    assert!(unused.is_empty(), "{unused:#?}");
}

/// Words that were private ones for what has a common name, and the name.
const RETIRED: &[(&str, &str)] = &[
    ("fence", "barrier"),
    ("ghost", "phantom"),
    ("meet", "invalidate, visit or overlap"),
    ("meets", "invalidates, visits or overlaps"),
    ("met", "invalidated or visited"),
    ("put_right", "clean up"),
    ("told", "answered, announced or reported"),
    ("whole", "exclusive, or full"),
];

/// The words of an identifier, in lower case.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in identifier.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        words.last_mut().unwrap().extend(c.to_lowercase().filter(|c| *c != '_'));
    }
    words
}

#[test]
fn names_have_no_word_that_was_retired() {
    let mut faults = Vec::new();
    for (_, file) in engine() {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        // Texts speak English.
        let code = lines.flat_map(|line| line.split('"').step_by(2));
        for name in code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_')) {
            let parts = format!("_{}_", words(name).join("_"));
            let retired = RETIRED.iter().filter(|(word, _)| parts.contains(&format!("_{word}_")));
            faults.extend(retired.map(|(_, better)| format!("{}: {name}; say {better}", file.display())));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(words("has_metFence"), ["has", "met", "fence"]);
}

#[test]
fn one_type_is_called_connection_and_it_is_the_callers() {
    let files = engine().into_iter().map(|(_, file)| file).chain(sources(&src_of("flatwater-sqlite")));
    let named: Vec<_> = files
        .filter(|file| std::fs::read_to_string(file).unwrap().lines().any(|line| line.ends_with("struct Connection {")))
        .collect();
    assert_eq!(named, [src_of("flatwater").join("api/connection.rs")]);
}

#[test]
fn a_hint_names_the_api_by_its_table() {
    let of_rust = ["`Options::", "`Tuning::", "`Migrations::", "`process::", "`tx."];
    let names = Name::ALL.iter().map(|name| name.rust()).filter(|rust| rust.contains('`'));
    let names: Vec<&str> = of_rust.into_iter().chain(names).collect();
    let mut faults = Vec::new();
    for (_, file) in engine().iter().filter(|(_, file)| !file.ends_with("error/hint.rs")) {
        let code = code(&std::fs::read_to_string(file).unwrap());
        // What the compiler says of a wrong type is for Rust alone.
        let is_for_rust = |line: &&str| ["message = ", "label = ", "note = "].iter().any(|key| line.contains(key));
        let lines = code.lines().filter(|line| !is_for_rust(line));
        let named = lines.filter(|line| names.iter().any(|name| line.contains(name)));
        faults.extend(named.map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(faults.is_empty(), "a front end in another language cannot spell these: {faults:#?}");
}

#[test]
fn unsafe_stands_in_flatwater_sqlite_only() {
    let mut with_unsafe: BTreeMap<String, usize> = BTreeMap::new();
    for (_, file) in engine() {
        let text = std::fs::read_to_string(&file).unwrap();
        let blocks =
            text.matches("unsafe {").count() + text.matches("unsafe fn").count() + text.matches("unsafe impl").count();
        if blocks > 0 {
            with_unsafe.insert(file.display().to_string(), blocks);
        }
    }
    assert!(with_unsafe.is_empty(), "{with_unsafe:?}");
    for name in ENGINE {
        let head = std::fs::read_to_string(src_of(name).join("lib.rs")).unwrap();
        assert!(head.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}
