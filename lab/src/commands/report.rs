//! `report`: one self-contained page from result files and the experiments.
//!
//! Owns: the page's data, and how page, style, script and data become one file. The page is in `lab/web`; its own
//! package manager bundles its script when necessary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::commands::experiment::{self, Entry};
use crate::figures::result::{BASE, CANDIDATE};
use crate::figures::result::{Kind, Measured, write_atomically};
use crate::measuring::process::{self, Ended, Interrupt};
use crate::measuring::repository::Repository;
use crate::verdicts::compare::{Comparison, Request};
use crate::verdicts::summary::{Summary, summarize};

const BUNDLE_LIMIT: Duration = Duration::from_secs(300);

/// `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Result files of `run` and `ab`
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "PAGE")]
    pub out: Option<PathBuf>,
    /// Where the experiments are
    #[arg(long, value_name = "DIR")]
    pub experiments_dir: Option<PathBuf>,
}

/// The data for the page's script.
#[derive(Serialize)]
struct Data {
    generated: String,
    results: Vec<Summary>,
    comparisons: Vec<Compared>,
    experiments: Vec<Entry>,
}

#[derive(Serialize)]
struct Compared {
    id: String,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Writes the page and prints its path.
pub fn report(args: &ReportArgs, interrupt: &Interrupt) -> Result<bool> {
    let repository = Repository::here()?;
    let measured = args.files.iter().map(|file| Measured::read(file)).collect::<Result<Vec<_>>>()?;
    let experiments = args.experiments_dir.clone().unwrap_or_else(|| repository.root.join("lab/experiments"));
    let data = Data {
        generated: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        results: measured.iter().map(summarize).collect(),
        comparisons: measured.iter().filter(|one| one.kind == Kind::Ab).map(compared).collect(),
        experiments: experiment::index(&experiments)?,
    };
    let web = repository.root.join("lab/web");
    let dist = bundle(&web, interrupt)?;
    let read = |path: PathBuf| fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()));
    let page = assemble(
        &read(web.join("page.html"))?,
        &read(dist.join("page.css"))?,
        &read(dist.join("page.js"))?,
        &serde_json::to_string(&data)?,
    );
    let out = args.out.clone().unwrap_or_else(|| repository.out().join("page.html"));
    write_atomically(&out, page.as_bytes())?;
    println!("{}", out.display());
    Ok(true)
}

fn compared(measured: &Measured) -> Compared {
    let comparison = Comparison::within(measured, BASE, CANDIDATE, &Request::default());
    Compared { id: measured.id.clone(), comparison }
}

/// Inserts the parts at their marks. The data is escaped, so it cannot end its element.
fn assemble(page: &str, style: &str, script: &str, data: &str) -> String {
    page.replace("<!--style-->", &format!("<style>{style}</style>"))
        .replace("<!--script-->", &format!("<script type=\"module\">{}</script>", script.replace("</", "<\\/")))
        .replace("<!--data-->", &data.replace('<', "\\u003c"))
}

/// Installs the page's dependencies, if necessary, and bundles its script and style.
fn bundle(web: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    let lock =
        fs::read_to_string(web.join("package-lock.json")).context("the page's package-lock.json is not there")?;
    let stamp = web.join("node_modules/.lab-built");
    if fs::read_to_string(&stamp).ok().as_deref() != Some(&lock) {
        npm(web, &["ci", "--no-fund", "--no-audit"], interrupt)?;
        fs::write(&stamp, &lock)?;
    }
    npm(web, &["run", "--silent", "build"], interrupt)?;
    Ok(web.join("dist"))
}

fn npm(web: &Path, words: &[&str], interrupt: &Interrupt) -> Result<()> {
    process::run(Command::new("npm").args(words).current_dir(web), BUNDLE_LIMIT, interrupt)
        .and_then(Ended::success)
        .with_context(|| format!("the page needs Node and npm; `npm {}` failed", words.join(" ")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_ends_the_script_it_stands_in() {
        let page = assemble("<!--style--><!--data--><!--script-->", "p{}", "f('</script>')", r#"{"a":"</script><b>"}"#);
        assert_eq!(page.matches("</script>").count(), 1, "{page}");
        assert!(page.contains(r#"{"a":"\u003c/script>\u003cb>"}"#), "{page}");
    }
}
