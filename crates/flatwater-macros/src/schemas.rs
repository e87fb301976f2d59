//! The schemas that this process of the compiler has built.
//!
//! Owns: which schema a text is checked with, and the files that the compiler is to watch. Invariants: a schema is built once, and again
//! when a file that made it has another length or time, as in the process of an editor; the files are named to the compiler once in a
//! process, for naming them takes longer than a check. Leaves out: building one (`flatwater-check`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use flatwater_check::{Checked, Fault, Project, Schema};
use proc_macro2::TokenStream;
use quote::quote;

/// The files of a folder, or a file, each with its length and time.
type Stamps = Vec<(PathBuf, Option<(u64, SystemTime)>)>;

struct Known {
    schema: Schema,
    types: BTreeMap<String, String>,
    file: Option<PathBuf>,
    watched: Vec<PathBuf>,
    stamps: Stamps,
}

type Key = (PathBuf, Option<String>);

static SCHEMAS: Mutex<BTreeMap<Key, Known>> = Mutex::new(BTreeMap::new());
static NAMED: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

/// What is known of a text: what it returns, and the types of the program.
pub(crate) struct Answer {
    pub(crate) checked: Checked,
    pub(crate) types: BTreeMap<String, String>,
    /// Code that names the files of the schema to the compiler.
    pub(crate) files: TokenStream,
}

/// Checks a text with the schema of the program in this folder.
pub(crate) fn check(root: &Path, database: Option<String>, sql: &str) -> Result<Answer, Fault> {
    let key = (root.to_owned(), database);
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_current = schemas.get(&key).is_some_and(|known| stamps(&known.watched) == known.stamps);
    if !is_current {
        schemas.insert(key.clone(), build(root, key.1.as_deref())?);
    }
    let Some(known) = schemas.get_mut(&key) else { unreachable!("it was just inserted") };
    let checked = known.schema.check(sql)?;
    let files = if NAMED.lock().unwrap_or_else(PoisonError::into_inner).insert(key) { named(known) } else { quote!() };
    Ok(Answer { checked, types: known.types.clone(), files })
}

fn build(root: &Path, database: Option<&str>) -> Result<Known, Fault> {
    let project = Project::of(root)?;
    let database = project.database(database)?;
    let watched = [root.join("flatwater.toml"), root.join("Cargo.toml")].into_iter();
    let watched: Vec<PathBuf> = watched.chain(database.folders().map(Path::to_owned)).collect();
    let stamps = stamps(&watched);
    let schema = Schema::new(database)?;
    Ok(Known { schema, types: database.types.clone(), file: project.file.clone(), watched, stamps })
}

fn stamps(watched: &[PathBuf]) -> Stamps {
    let stamp = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok();
        let stamp = metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
        (path, stamp)
    };
    let in_folder = |path: &PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.collect::<BTreeSet<_>>()
    };
    watched.iter().flat_map(|path| std::iter::once(path.clone()).chain(in_folder(path))).map(stamp).collect()
}

fn named(known: &Known) -> TokenStream {
    let files = known.schema.files().iter().chain(&known.file).map(|path| path.to_string_lossy().into_owned());
    quote!(#(const _: &[u8] = ::core::include_bytes!(#files);)*)
}
