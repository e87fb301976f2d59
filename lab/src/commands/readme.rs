//! The chart of the README, and the tables on the page of speed, each generated between two marks from committed results.
//!
//! Owns: the rows and columns of the table of speed; where the others (`busy` and `rest` make them) and the chart (`chart` draws it)
//! stand.
//! Leaves out: what the figures mean.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::commands::busy::turns_table;
use crate::commands::rest::rest_table;
use crate::figures::floor::{FLOOR, HELD_FLOOR};
use crate::figures::metric::OPS_PER_SECOND;
use crate::figures::result::{Measured, write_atomically};
use crate::measuring::repository::Repository;
use crate::verdicts::chart::{LANGUAGES, LOOKS, in_words, svg};
use crate::verdicts::summary::{LaneSummary, PeerSummary, Summary, summarize};
use crate::verdicts::table::thousands_of;

/// `readme-table`.
#[derive(Args, Debug)]
pub struct ReadmeArgs {
    /// The committed result; without it, the one that the page names
    pub file: Option<PathBuf>,
    /// The page with the marks; without it, those that have some
    #[arg(long, value_name = "FILE")]
    pub readme: Option<PathBuf>,
    /// Change nothing; fail if the table is not what the result generates
    #[arg(long)]
    pub check: bool,
}

const BEGIN: &str = "<!-- lab:speed ";
const END: &str = "<!-- /lab:speed -->";
const BEGIN_CHART: &str = "<!-- lab:chart -->";
const END_CHART: &str = "<!-- /lab:chart -->";
const BEGIN_TURNS: &str = "<!-- lab:turns ";
const END_TURNS: &str = "<!-- /lab:turns -->";
const BEGIN_REST: &str = "<!-- lab:rest ";
const END_REST: &str = "<!-- /lab:rest -->";
const OURS: &str = "flatwater";
/// The pages with marks.
const PAGES: [&str; 2] = ["README.md", "docs/guide/speed.md"];

/// The columns before Flatwater's, if the result has them.
const PEERS: [&str; 7] = [FLOOR, "mutex", "tokio-rusqlite", "sqlx", "deadpool-sqlite", "trailbase-sqlite", "turso"];

/// The rows: a lane, its figure if it is not the lane's headline, and its title.
const ROWS: [(&str, Option<&str>, &str); 15] = [
    ("chat_1", None, "a chat service: one call after another, 10 % writes"),
    ("chat_100", None, "the same calls from 100 tasks"),
    ("service_100", None, "100 tasks, 2 % writes"),
    ("service_100", Some("last_p99_us"), "100 tasks, 2 % writes: p99 of the last 20 messages"),
    ("service_100", Some("send_p99_us"), "100 tasks, 2 % writes: p99 of a new message"),
    ("point_query", None, "one awaited point query"),
    ("insert_sequential", None, "one awaited INSERT after another"),
    ("insert_concurrent_100", None, "100 tasks, small INSERTs, durability normal"),
    ("insert_concurrent_100_full", None, "100 tasks, small INSERTs, durability full"),
    ("many_10k", None, "`execute_many` of 10,000 rows"),
    ("query_10k", None, "`query` of 10,000 rows"),
    ("transaction_interactive", None, "a transaction of three statements, awaited one by one"),
    ("burst_8k", None, "6,000 INSERTs of 8 KiB: p99"),
    ("burst_8k", Some(P999), "6,000 INSERTs of 8 KiB: p99.9"),
    ("burst_8k_long", Some(P999), "60,000 INSERTs of 8 KiB: p99.9"),
];
const P999: &str = "p999_us";

/// Rewrites the tables, or checks them.
pub fn readme_table(args: &ReadmeArgs) -> Result<bool> {
    let repository = Repository::here()?;
    let pages = PAGES.iter().map(|page| repository.root.join(page));
    let pages = args.readme.clone().map_or_else(|| pages.collect(), |page| vec![page]);
    pages.iter().try_for_each(|page| write_page(page, &repository.root, args)).map(|()| true)
}

fn write_page(path: &Path, root: &Path, args: &ReadmeArgs) -> Result<()> {
    let page = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut written = page.clone();
    if args.readme.is_some() || page.contains(BEGIN) {
        let named = match &args.file {
            Some(file) => file.to_string_lossy().into_owned(),
            None => named_in(&page)?.to_owned(),
        };
        written = rewritten(&page, root, &named)?;
    }
    let (written, images) = with_chart(&with_others(&written, root)?, root)?;
    for (path, text) in images.into_iter().chain([(path.to_owned(), written)]) {
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            continue;
        }
        if args.check {
            bail!("{} is not what its results generate; `flatwater-lab readme-table` writes it", path.display());
        }
        write_atomically(&path, text.as_bytes())?;
    }
    Ok(())
}

/// Returns the page with the chart, if it has the marks for it, and the files of its images.
pub fn with_chart(page: &str, root: &Path) -> Result<(String, Vec<(PathBuf, String)>)> {
    let Some((before, rest)) = page.split_once(BEGIN_CHART) else { return Ok((page.to_owned(), Vec::new())) };
    let missing = || format!("the page has a mark `{BEGIN_CHART}` without `{END_CHART}`");
    let (_, after) = rest.split_once(END_CHART).with_context(missing)?;
    let mut results = Vec::new();
    for language in &LANGUAGES {
        let file = root.join(language.result);
        if file.exists() {
            let measured = Measured::read(&file)?;
            refuse_what_is_nothing_to_show(&measured)?;
            results.push((language, summarize(&measured)));
        }
    }
    let image = |look: &str| format!("docs/images/speed-{look}.svg");
    let images = LOOKS.iter().map(|(name, look)| (root.join(image(name)), svg(&results, look))).collect();
    let machines =
        results.iter().map(|(language, summary)| format!("{}: {}", language.name, machine(summary, language.ours())));
    let chart = format!(
        "<picture>\n  <source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">\n  <img src=\"{}\" alt=\"{}\">\n</picture>\n\n\
         Times: shorter is better. {}\n{RATIOS}\n",
        image("dark"),
        image("light"),
        in_words(&results),
        machines.collect::<Vec<_>>().join("\n"),
    );
    Ok((format!("{before}{BEGIN_CHART}\n{chart}{END_CHART}{after}"), images))
}

/// Returns the page with the table of that result, whose path is relative to the root.
pub fn rewritten(readme: &str, root: &Path, file: &str) -> Result<String> {
    let table = generate(&Measured::read(&root.join(file))?)?;
    let (before, rest) = readme.split_once(BEGIN).context(NO_MARKS)?;
    let (_, after) = rest.split_once(END).context(NO_MARKS)?;
    Ok(format!("{before}{BEGIN}{file} -->\n{table}{END}{after}"))
}

/// Returns the page with the tables of turns and of what is taken at rest, if it has the marks for them.
pub fn with_others(page: &str, root: &Path) -> Result<String> {
    let page = between(page, root, (BEGIN_TURNS, END_TURNS), &turns_table)?;
    between(&page, root, (BEGIN_REST, END_REST), &rest_table)
}

/// Returns the page with the table of the result that the first mark names between two marks, if it has them.
fn between(
    page: &str,
    root: &Path,
    (begin, end): (&str, &str),
    table: &dyn Fn(&Measured) -> Result<String>,
) -> Result<String> {
    let Some((before, rest)) = page.split_once(begin) else { return Ok(page.to_owned()) };
    let missing = || format!("the page has a mark `{begin}FILE -->` without `{end}`");
    let (file, rest) = rest.split_once(" -->").with_context(missing)?;
    let (_, after) = rest.split_once(end).with_context(missing)?;
    let measured = Measured::read(&root.join(file.trim()))?;
    refuse_what_is_nothing_to_show(&measured)?;
    let table = table(&measured)?;
    Ok(format!("{before}{begin}{file} -->\n{table}{end}{after}"))
}

fn refuse_what_is_nothing_to_show(measured: &Measured) -> Result<()> {
    if measured.quick || measured.partial || measured.dirty {
        bail!("a quick, partial or dirty result is nothing to show");
    }
    Ok(())
}

const NO_MARKS: &str = "the page has no marks: `<!-- lab:speed FILE -->` and `<!-- /lab:speed -->`";

/// Returns the result that a page with marks names.
pub fn named_in(readme: &str) -> Result<&str> {
    let (_, rest) = readme.split_once(BEGIN).context(NO_MARKS)?;
    rest.split_once(" -->").map(|(file, _)| file.trim()).context(NO_MARKS)
}

/// Returns the sentence about the machine, and the table.
fn generate(measured: &Measured) -> Result<String> {
    refuse_what_is_nothing_to_show(measured)?;
    let summary = summarize(measured);
    let peers: Vec<&str> =
        PEERS.into_iter().filter(|peer| summary.circumstances.peers.iter().any(|has| has == peer)).collect();
    let lane = |name: &str| summary.lanes.iter().find(|lane| lane.name == name);
    let rows: Vec<String> =
        ROWS.iter().filter_map(|(name, figure, label)| row(lane(name)?, *figure, label, &peers)).collect();
    if rows.is_empty() {
        bail!("the result has none of the lanes of the table for peer {OURS}");
    }
    let header = peers.iter().map(|peer| format!(" {peer} |")).collect::<String>();
    let rule = "---|".repeat(peers.len() + 3);
    let rows = rows.join("\n");
    let machine = machine(&summary, OURS);
    Ok(format!("{machine}\n{RATIOS}\n\n| |{header} Flatwater | beside `{FLOOR}` |\n|{rule}\n{rows}\n"))
}

const RATIOS: &str = "Ratios carry over to other machines; absolute figures do not.";

fn machine(summary: &Summary, ours: &str) -> String {
    let circumstances = &summary.circumstances;
    let machine = &circumstances.machine;
    let sqlite = circumstances.versions.get(ours).map(|version| version.sqlite.as_str()).unwrap_or("?");
    let commit = circumstances.commit.as_deref().map_or("no commit", |commit| &commit[..commit.len().min(10)]);
    format!(
        "{}, {} cores, {} GiB, {}, {}; SQLite {sqlite}; {}, commit {commit}. Medians of {} runs a side, the sides in turn.",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.os,
        machine.filesystem,
        circumstances.started.get(..10).unwrap_or_default(),
        circumstances.runs,
    )
}

fn row(lane: &LaneSummary, asked: Option<&str>, label: &str, peers: &[&str]) -> Option<String> {
    let peer = |name: &str| lane.peers.iter().find(|peer| peer.peer == name);
    let ours = peer(OURS)?;
    let median = |peer: Option<&PeerSummary>| {
        peer.and_then(|peer| peer.figures.get(asked.unwrap_or(lane.headline))).map(|spread| spread.median)
    };
    let cell = |peer| median(peer).map_or_else(|| "-".to_owned(), |median| figure(lane, asked, median));
    let cells = peers.iter().map(|name| format!(" {} |", cell(peer(name)))).collect::<String>();
    let ratio = match asked {
        None => beside(lane, ours),
        Some(_) => median(Some(ours))
            .zip(median(peer(FLOOR)))
            .map_or_else(|| "-".to_owned(), |(ours, floor)| format!("{:.2} of the time", ours / floor)),
    };
    Some(format!("| {label} |{cells} {} | {ratio} |", cell(Some(ours))))
}

/// Returns the ratio to the floor. If it is better than the floor, it also names the held floor.
fn beside(lane: &LaneSummary, ours: &PeerSummary) -> String {
    let Some(ratio) = ours.to_floor else {
        return "-".to_owned();
    };
    let of = if lane.higher_is_better { "times the rate" } else { "of the time" };
    match ours.to_held_floor {
        Some(held) if ours.beats_floor => format!("{ratio:.2} {of}; {held:.2} of `{HELD_FLOOR}`"),
        _ => format!("{ratio:.2} {of}"),
    }
}

fn figure(lane: &LaneSummary, asked: Option<&str>, value: f64) -> String {
    if asked.is_none() && lane.headline == OPS_PER_SECOND {
        let unit = if lane.lane.ops_unit.is_empty() { "ops" } else { &lane.lane.ops_unit };
        return format!("{} {unit}/s", thousands_of(significant(value)));
    }
    match value {
        small if small < 10.0 => format!("{small:.1} us"),
        small if small < 1000.0 => format!("{small:.0} us"),
        large => format!("{:.1} ms", large / 1000.0),
    }
}

/// Rounds to three significant figures.
fn significant(value: f64) -> f64 {
    let unit = 10_f64.powi((value.abs().log10().floor() as i32 - 2).max(0));
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_figures_that_count() {
        for (value, expected) in [(476_543.0, 477_000.0), (1234.0, 1230.0), (12.3, 12.0), (999_600.0, 1_000_000.0)] {
            assert_eq!(significant(value), expected);
        }
    }

    #[test]
    fn a_page_needs_no_table_of_turns_and_one_that_does_not_end_is_refused() {
        let root = Path::new(".");
        assert_eq!(with_others("a page", root).unwrap(), "a page");
        let error = with_others("<!-- lab:turns x.json -->", root).unwrap_err();
        assert!(error.to_string().contains("/lab:turns"));
    }

    #[test]
    fn a_page_without_both_marks_is_refused() {
        assert!(named_in("nothing").is_err());
        assert_eq!(named_in("a <!-- lab:speed lab/results/x.json -->").unwrap(), "lab/results/x.json");
    }
}
