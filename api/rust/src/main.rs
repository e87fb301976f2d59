//! Prints the public API of the Rust crates, a line for each item: `flatwater-api <folder of rustdoc's JSON>`.
//!
//! Owns: which crates have a public API, and how what `flatwater` exports of the crates below it is put under the name by which a
//! program knows it. Leaves out: reading rustdoc's JSON (`public-api`), and comparing with what is committed (the Makefile).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use public_api::Builder;
use serde_json::Value;

/// The crates that a program depends on.
const PUBLIC: [&str; 3] = ["flatwater", "flatwater_derive", "flatwater_remote"];
/// Those that it sees by what `flatwater` exports of them.
const BELOW: [&str; 2] = ["flatwater_base", "flatwater_sqlite"];

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("flatwater-api <folder of rustdoc's JSON>")?;
    let folder = Path::new(&folder);
    let exports = exports(folder, "flatwater")?;
    for name in PUBLIC {
        println!("# {name}\n");
        let mut lines = items(folder, name)?;
        if name == "flatwater" {
            for below in BELOW {
                lines.extend(items(folder, below)?.into_iter().filter(|line| is_exported(line, &exports)));
            }
            lines.extend(exports.iter().map(|export| format!("pub use {} = {}", export.public, export.source)));
        }
        let mut lines: Vec<String> = lines.into_iter().map(|line| renamed(&line, &exports)).collect();
        lines.sort();
        lines.dedup();
        println!("{}\n", lines.join("\n"));
    }
    Ok(())
}

/// An item of another crate that `flatwater` exports: the path in the `pub use`, where the item is defined, and the name for
/// programs.
struct Export {
    source: String,
    defined: String,
    public: String,
}

/// Returns what the crate exports of other crates.
fn exports(folder: &Path, name: &str) -> Result<Vec<Export>> {
    let json: Value = serde_json::from_str(&read(folder, name)?)?;
    let mut found = BTreeMap::new();
    let mut modules = vec![(json["root"].to_string(), name.to_owned())];
    while let Some((module, path)) = modules.pop() {
        for id in json["index"][&module]["inner"]["module"]["items"].as_array().into_iter().flatten() {
            let item = &json["index"][id.to_string()];
            if item["inner"].get("module").is_some() {
                let inner = item["name"].as_str().context("a module has a name")?;
                modules.push((id.to_string(), format!("{path}::{inner}")));
                continue;
            }
            let Some(export) = item["inner"].get("use") else { continue };
            let (source, public) = (export["source"].as_str(), export["name"].as_str());
            let (source, public) = source.zip(public).context("a `use` has a source and a name")?;
            let segments = json["paths"][export["id"].to_string()]["path"].as_array();
            let segments = segments.into_iter().flatten().filter_map(Value::as_str);
            let defined = segments.collect::<Vec<_>>().join("::");
            if source.starts_with("crate::") || defined.starts_with(&format!("{name}::")) || defined.is_empty() {
                continue;
            }
            if export["is_glob"] == true {
                bail!("{path} exports all of {source}; name what it exports");
            }
            // A derive macro has the name of its trait, and another source.
            found.insert((format!("{path}::{public}"), source.to_owned()), defined);
        }
    }
    let export = |((public, source), defined)| Export { source, defined, public };
    Ok(found.into_iter().map(export).collect())
}

/// Returns the items of one crate, without what every type has. `Send` and `Sync` are named, for they are lost by accident.
fn items(folder: &Path, name: &str) -> Result<Vec<String>> {
    let api = Builder::from_rustdoc_json(file(folder, name)).omit_blanket_impls(true).build();
    let api = api.with_context(|| format!("{name} has JSON of another toolchain than `public-api` reads"))?;
    let lines = api.items().map(|item| item.to_string());
    let is_other = |line: &String| line.starts_with("pub use ") || NOT_LISTED.iter().any(|of| line.contains(of));
    Ok(lines.filter(|line| !is_other(line)).collect())
}

const NOT_LISTED: [&str; 5] = [
    "core::marker::Unpin for ",
    "core::marker::Freeze for ",
    "core::marker::UnsafeUnpin for ",
    "core::panic::unwind_safe::",
    "core::marker::StructuralPartialEq for ",
];

/// Returns whether the line is about an item that is exported: it is that item, a part of it, or an implementation that concerns it.
fn is_exported(line: &str, exports: &[Export]) -> bool {
    let is_below = |export: &&Export| BELOW.iter().any(|name| export.defined.starts_with(&format!("{name}::")));
    let paths = exports.iter().filter(is_below).flat_map(|export| [&export.source, &export.defined]);
    if line.starts_with("impl") {
        let header = line.split(" where ").next().unwrap_or(line);
        return paths.into_iter().any(|path| positions(header, path).next().is_some());
    }
    let Some(start) = BELOW.iter().filter_map(|name| line.find(&format!("{name}::"))).min() else { return false };
    paths.into_iter().any(|path| positions(&line[start..], path).next() == Some(0))
}

/// Returns the line with the names for programs.
fn renamed(line: &str, exports: &[Export]) -> String {
    if line.starts_with("pub use ") {
        return line.to_owned();
    }
    let of_crates = exports.iter().filter(|export| export.defined.contains("::"));
    let paths = of_crates.flat_map(|export| {
        BTreeSet::from([&export.source, &export.defined]).into_iter().map(move |path| (path, export))
    });
    paths.fold(line.to_owned(), |line, (path, export)| {
        let mut renamed = String::new();
        let mut rest = 0;
        for start in positions(&line, path) {
            renamed += &line[rest..start];
            renamed += &export.public;
            rest = start + path.len();
        }
        renamed + &line[rest..]
    })
}

/// Returns where the path stands in the line and does not go on. `public-api` writes the bound of an associated type without its
/// colon, so what is before it does not count.
fn positions<'l>(line: &'l str, path: &'l str) -> impl Iterator<Item = usize> + 'l {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    let starts = line.match_indices(path).map(|(start, _)| start);
    starts.filter(move |start| !line[start + path.len()..].starts_with(goes_on))
}

fn file(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join(format!("{name}.json"))
}

fn read(folder: &Path, name: &str) -> Result<String> {
    let file = file(folder, name);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}
