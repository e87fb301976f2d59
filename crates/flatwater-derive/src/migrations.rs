//! `migrations!`: a folder of migrations as a part of the program.
//!
//! Owns: reading the folder when the program is compiled, and what is refused of it then, with the name of the file. Runs in the
//! compiler. Invariants: each file of the list is one that the compiler watches; what is accepted here is accepted by
//! `Migrations::new`. Leaves out: that a file is added, which stable Rust cannot watch: a line of a build script does.

use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Token};

/// `"folder"`, or `"folder", crate = path`.
pub(crate) struct Input {
    folder: LitStr,
    krate: TokenStream,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let folder = input.parse()?;
        let mut krate = quote!(::flatwater);
        if input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            let path: syn::Path = input.parse()?;
            krate = quote!(#path);
        }
        Ok(Self { folder, krate })
    }
}

pub(crate) fn embed(input: &Input) -> syn::Result<TokenStream> {
    let Input { folder, krate } = input;
    // Set by cargo, for each package.
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let files = files(&root.join(folder.value())).map_err(|message| Error::new(folder.span(), message))?;
    let steps = files.iter().map(|(name, path)| {
        let path = LitStr::new(path, Span::call_site());
        quote!((#name, ::core::include_str!(#path)))
    });
    Ok(quote!(#krate::Migrations::new::<&str, &str>([#(#steps),*])))
}

/// Returns the names of the migrations of a folder in their order, each with the path of its file.
fn files(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: std::io::Error| format!("the folder {} cannot be read: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let path = path.to_str().ok_or_else(|| format!("the path {} is not UTF-8", path.display()))?;
        let name = path.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or(path);
        if let Some(name) = name.strip_suffix(".sql").filter(|name| !name.ends_with(".down")) {
            let name = name.strip_suffix(".up").unwrap_or(name);
            let number = number(name).ok_or_else(|| {
                format!("the migration {path} has no number: a name begins with it, for example 001_init.sql")
            })?;
            is_a_script(path)?;
            files.push((number, name.to_owned(), path.to_owned()));
        }
    }
    if files.is_empty() {
        return Err(format!(
            "there is no migration in the folder {}: its files are named 001_init.sql",
            folder.display()
        ));
    }
    files.sort();
    for two in files.windows(2) {
        let ((before, _, first), (after, _, second)) = (&two[0], &two[1]);
        if before == after {
            return Err(format!("the migrations {first} and {second} have the same number"));
        }
    }
    Ok(files.into_iter().map(|(_, name, path)| (name, path)).collect())
}

/// The number at the beginning of a name.
fn number(name: &str) -> Option<i64> {
    let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let (number, rest) = name.split_at(digits);
    number.parse().ok().filter(|_| rest.is_empty() || rest.starts_with('_'))
}

fn is_a_script(path: &str) -> Result<(), String> {
    let script = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
    match script {
        script if script.trim().is_empty() => Err(format!("the migration {path} is empty")),
        script if script.contains('\0') => Err(format!("the migration {path} has a NUL byte")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names in a folder of these files, or the error without the path of the folder.
    fn of(content: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in content {
            std::fs::write(folder.path().join(name), script).unwrap();
        }
        let root = format!("{}/", folder.path().display());
        let names = files(folder.path()).map_err(|error| error.replace(&root, ""))?;
        Ok(names.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn a_folder_is_read_in_the_order_of_its_numbers_without_what_is_no_step_up() {
        let folder =
            [("2_b.up.sql", "B"), ("2_b.down.sql", ""), ("10_later.txt", ""), ("01_a.sql", "A"), ("3.sql", "C")];
        assert_eq!(of(&folder).unwrap(), ["01_a", "2_b", "3"]);
        let times = [("20260131093000_b.sql", "B"), ("20260130_a.sql", "A"), ("1_old.sql", "O"), ("3_c.sql", "C")];
        assert_eq!(of(&times).unwrap(), ["1_old", "3_c", "20260130_a", "20260131093000_b"], "as `from_dir` takes them");
    }

    #[test]
    fn what_is_wrong_names_the_file() {
        for (content, says) in [
            (&[("1_a.sql", "A"), ("01_b.sql", "B")][..], "1_a.sql and 01_b.sql have the same number"),
            (&[("1_a.sql", "A"), ("init.sql", "B")], "init.sql has no number"),
            (&[("1a.sql", "A")], "1a.sql has no number"),
            (&[("99999999999999999999_a.sql", "A")], "has no number"),
            (&[("1_a.sql", " \n")], "1_a.sql is empty"),
            (&[("1_a.sql", "SELECT '\0'")], "1_a.sql has a NUL byte"),
            (&[("README.md", "A"), ("1_a.down.sql", "A")], "there is no migration in the folder"),
        ] {
            let error = of(content).unwrap_err();
            let swapped = error.replace("01_b.sql and 1_a.sql", "1_a.sql and 01_b.sql");
            assert!(swapped.contains(says), "{error}");
        }
        assert!(files(Path::new("/nowhere/at/all")).unwrap_err().contains("/nowhere/at/all cannot be read"));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1_a.sql"), b"\xff").unwrap();
        assert!(files(folder.path()).unwrap_err().contains("1_a.sql cannot be read"));
    }

    #[test]
    fn the_crate_may_have_another_name() {
        let of = |text: &str| syn::parse_str::<Input>(text).map(|input| input.krate.to_string());
        assert_eq!(of("\"a\"").unwrap(), ":: flatwater");
        assert_eq!(of("\"a\", crate = other::db").unwrap(), "other :: db");
        assert!(of("a").is_err() && of("\"a\", other").is_err());
    }
}
