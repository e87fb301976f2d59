//! The files of a program that may have SQL in them.
//!
//! Owns: the search. Invariants: files come in the order of their names, so that the output is the same each time; folders of builds and
//! dependencies are left out, and so are migrations, which are the schema. Leaves out: what is in them.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};

const LEFT_OUT: [&str; 6] = ["target", "node_modules", "dist", "build", "__pycache__", "venv"];

/// The files in these files and folders, but for the folders in `without`.
pub(crate) fn files(of: &[PathBuf], without: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in of {
        if path.is_dir() {
            in_folder(path, without, &mut all)?;
        } else {
            all.push(path.clone());
        }
    }
    Ok(all)
}

fn in_folder(folder: &Path, without: &[PathBuf], all: &mut Vec<PathBuf>) -> Outcome {
    let failed = || Failure::system(format!("reading {}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(failed())?.collect::<Result<Vec<_>, _>>().map_err(failed())?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !path.is_dir() {
            all.push(path);
        } else if !name.starts_with('.') && !LEFT_OUT.contains(&&*name) && !is_one_of(&path, without) {
            in_folder(&path, without, all)?;
        }
    }
    Ok(())
}

fn is_one_of(path: &Path, of: &[PathBuf]) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    of.iter().any(|other| real(other).is_some() && real(other) == real(path))
}
