//! The table on the page of reliability: what the last long run did. It is generated between two marks from the file that the run
//! wrote.
//!
//! Leaves out: what the counts mean, which `docs/design/torture.md` explains.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::report::{ActReport, Report, thousands};

const BEGIN: &str = "<!-- torture ";
const END: &str = "<!-- /torture -->";
const NO_MARKS: &str = "the page has no marks: `<!-- torture FILE -->` and `<!-- /torture -->`";

#[derive(Args)]
pub(crate) struct ReadmeArgs {
    /// The file that a run wrote, relative to where this runs; without it, the one that the page names
    file: Option<PathBuf>,
    /// The page with the marks
    #[arg(long, value_name = "FILE", default_value = "docs/guide/reliability.md")]
    page: PathBuf,
}

/// Writes the table into the page.
pub(crate) fn write_table(args: &ReadmeArgs) -> ExitCode {
    match written(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn written(args: &ReadmeArgs) -> Result<()> {
    let page = fs::read_to_string(&args.page).with_context(|| format!("cannot read {}", args.page.display()))?;
    let named = match &args.file {
        Some(file) => file.to_string_lossy().into_owned(),
        None => named_in(&page)?.to_owned(),
    };
    let report = fs::read_to_string(&named).with_context(|| format!("cannot read {named}"))?;
    let rewritten = rewritten(&page, &named, &report)?;
    if rewritten != page {
        fs::write(&args.page, rewritten).with_context(|| format!("cannot write {}", args.page.display()))?;
    }
    Ok(())
}

/// Returns the file that the page names.
fn named_in(page: &str) -> Result<&str> {
    let (_, rest) = page.split_once(BEGIN).context(NO_MARKS)?;
    rest.split_once(" -->").map(|(file, _)| file.trim()).context(NO_MARKS)
}

/// Returns the page with the table of `report`.
fn rewritten(page: &str, named: &str, report: &str) -> Result<String> {
    let report: Report = serde_json::from_str(report).with_context(|| format!("{named} is not what a run writes"))?;
    if !report.is_clean() {
        bail!("the run of {named} found something");
    }
    let (before, rest) = page.split_once(BEGIN).context(NO_MARKS)?;
    let (_, after) = rest.split_once(END).context(NO_MARKS)?;
    Ok(format!("{before}{BEGIN}{named} -->\n{}{END}{after}", table(&report)))
}

fn table(report: &Report) -> String {
    let minutes = report.seconds / 60;
    let rows: String = report.acts.iter().map(row).collect();
    format!(
        "One run of {minutes} minutes on {} cores, {}, commit {}, seed {}. It found nothing.\n\n| act | rounds | what it did |\n|---|---|---|\n{rows}",
        report.cores, report.date, report.commit, report.seed
    )
}

fn row(act: &ActReport) -> String {
    let did: Vec<_> = act.counts.0.iter().map(|(what, count)| format!("{} {what}", thousands(*count))).collect();
    format!("| {} | {} | {} |\n", act.act, thousands(act.rounds), did.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_has_no_marks_or_the_table_of_the_run_that_it_names() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = fs::read_to_string(root.join("docs/guide/reliability.md")).unwrap();
        let Ok(named) = named_in(&page) else { return };
        let report = fs::read_to_string(root.join(named)).unwrap();
        assert_eq!(rewritten(&page, named, &report).unwrap(), page, "`make torture-readme` writes the table");
    }

    #[test]
    fn a_run_that_found_something_is_not_shown() {
        let mut act = ActReport::new("histories");
        act.findings.push(crate::finding::Finding::new("a row is lost"));
        let report = Report::new(1, std::time::Duration::from_secs(60), vec![act]);
        let report = serde_json::to_string(&report).unwrap();
        let page = "<!-- torture a.json -->\n<!-- /torture -->";
        assert!(rewritten(page, "a.json", &report).unwrap_err().to_string().contains("found something"));
    }
}
