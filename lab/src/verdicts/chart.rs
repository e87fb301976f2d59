//! The chart of the README: a few lanes of each language as bars, in SVG, for light and for dark pages. Pure.
//!
//! Owns: which lanes and peers it shows, their places and colours. Every bar is a time, so shorter is better in all of them: a rate
//! is shown as the time of a hundred operations. The bars of one lane have one scale, which begins at 0. Leaves out: the pages that
//! show it (`readme`).

use std::fmt::Write;

use crate::figures::metric::OPS_PER_SECOND;
use crate::verdicts::summary::{LaneSummary, Summary};

/// The lanes of a language, and who is beside Flatwater there.
pub struct Language {
    /// The language.
    pub name: &'static str,
    /// The committed result, from the root of the repository.
    pub result: &'static str,
    /// The peers and what the chart calls them, Flatwater last.
    peers: &'static [(&'static str, &'static str)],
    lanes: [Bars; 3],
}

/// One group of bars.
struct Bars {
    lane: &'static str,
    title: &'static str,
    figure: Figure,
}

/// What a bar shows.
enum Figure {
    /// A figure in microseconds.
    Time(&'static str),
    /// The time of a hundred operations, by the rate.
    OfHundred,
}

const fn bars(lane: &'static str, title: &'static str, figure: Figure) -> Bars {
    Bars { lane, title, figure }
}

const ONE_READ: &str = "one read by key";
const INSERTS: &str = "100 inserts at once";
const HOLD: &str = "event loop held by a slow query";

impl Language {
    /// The peer that is Flatwater, which is the last.
    pub fn ours(&self) -> &'static str {
        self.peers.last().map_or("", |(peer, _)| peer)
    }
}

/// The languages, in the order of the chart.
pub const LANGUAGES: [Language; 3] = [
    Language {
        name: "Rust",
        result: "lab/results/speed.json",
        peers: &[("sqlx", "sqlx"), ("tokio-rusqlite", "tokio-rusqlite"), ("flatwater", "Flatwater")],
        lanes: [
            bars("point_query", ONE_READ, Figure::Time("p50_us")),
            bars("insert_concurrent_100", INSERTS, Figure::OfHundred),
            bars("chat_100", "100 calls of a chat service", Figure::OfHundred),
        ],
    },
    Language {
        name: "Python",
        result: "lab/results/python.json",
        peers: &[("py-aiosqlite", "aiosqlite"), ("py-sqlite3", "sqlite3"), ("py-flatwater", "Flatwater")],
        lanes: [
            bars("point_query", ONE_READ, Figure::Time("p50_us")),
            bars("insert_at_once_100", INSERTS, Figure::OfHundred),
            bars("loop_holds", HOLD, Figure::Time("statement_longest_gap_us")),
        ],
    },
    Language {
        name: "Node",
        result: "lab/results/node.json",
        peers: &[("node-better-sqlite3", "better-sqlite3"), ("node-flatwater", "Flatwater")],
        lanes: [
            bars("one_row", ONE_READ, Figure::Time("p50_us")),
            bars("insert_at_once_100", INSERTS, Figure::OfHundred),
            bars("loop_hold", HOLD, Figure::Time("max_us")),
        ],
    },
];

/// The colours of one chart.
pub struct Look {
    text: &'static str,
    quiet: &'static str,
    ours: &'static str,
    other: &'static str,
}

/// The looks, by the name of the file.
pub const LOOKS: [(&str, Look); 2] = [
    ("light", Look { text: "#1f2328", quiet: "#59636e", ours: "#0969da", other: "#afb8c1" }),
    ("dark", Look { text: "#f0f6fc", quiet: "#9198a1", ours: "#4493f8", other: "#59636e" }),
];

const PANEL: f64 = 270.0;
const LABEL: f64 = 92.0;
const VALUE: f64 = 58.0;
const TITLE: f64 = 44.0;
const BAR: f64 = 22.0;
const GAP: f64 = 14.0;

/// What one group of bars says: its title, and the peers with their times.
struct Drawn {
    title: &'static str,
    times: Vec<(&'static str, f64)>,
}

/// Returns the groups of bars of a language. A lane or a peer that the result does not have is left out.
fn drawn(language: &Language, summary: &Summary) -> Vec<Drawn> {
    let group = |bars: &Bars| {
        let lane = summary.lanes.iter().find(|lane| lane.name == bars.lane)?;
        let times = language.peers.iter().filter_map(|(peer, name)| Some((*name, time(lane, peer, &bars.figure)?)));
        let times: Vec<_> = times.collect();
        times.iter().any(|(name, _)| *name == OURS).then_some(Drawn { title: bars.title, times })
    };
    language.lanes.iter().filter_map(group).collect()
}

const OURS: &str = "Flatwater";

/// Returns the time of a peer in microseconds.
fn time(lane: &LaneSummary, peer: &str, figure: &Figure) -> Option<f64> {
    let figures = &lane.peers.iter().find(|summary| summary.peer == peer)?.figures;
    match figure {
        Figure::Time(name) => figures.get(*name).map(|spread| spread.median),
        Figure::OfHundred => figures.get(OPS_PER_SECOND).map(|spread| 100.0 * 1e6 / spread.median),
    }
}

/// Returns the chart in one look.
pub fn svg(results: &[(&Language, Summary)], look: &Look) -> String {
    let mut body = String::new();
    let mut y = 0.0;
    for (language, summary) in results {
        let groups = drawn(language, summary);
        let rows = groups.iter().map(|group| group.times.len()).max().unwrap_or(0);
        text(&mut body, (0.0, y + 17.0), (15, look.text, "start", 600), language.name);
        for (group, x) in groups.iter().zip([0.0, PANEL, 2.0 * PANEL]) {
            panel(&mut body, (x, y), group, look);
        }
        y += TITLE + rows as f64 * BAR + GAP;
    }
    let width = 3.0 * PANEL;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" role=\"img\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif\">\n{body}</svg>\n"
    )
}

fn panel(body: &mut String, (x, y): (f64, f64), group: &Drawn, look: &Look) {
    let longest = group.times.iter().map(|(_, time)| *time).fold(0.0, f64::max);
    let room = PANEL - LABEL - VALUE - GAP;
    text(body, (x, y + 37.0), (12, look.quiet, "start", 400), group.title);
    for (at, (name, time)) in group.times.iter().enumerate() {
        let top = y + TITLE + at as f64 * BAR;
        let width = (room * time / longest).max(1.0);
        let (color, weight) = if *name == OURS { (look.ours, 600) } else { (look.other, 400) };
        text(body, (x + LABEL - 6.0, top + 14.0), (12, look.text, "end", weight), name);
        let _ = writeln!(
            body,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\" fill=\"{color}\"/>",
            x + LABEL,
            top + 2.0,
            BAR - 6.0,
        );
        let end = x + LABEL + width + 5.0;
        text(body, (end, top + 14.0), (12, look.text, "start", weight), &shown(*time));
    }
}

fn text(body: &mut String, (x, y): (f64, f64), (size, color, anchor, weight): (u32, &str, &str, u32), what: &str) {
    let _ = writeln!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" text-anchor=\"{anchor}\" \
         fill=\"{color}\">{what}</text>"
    );
}

/// Returns the chart in words, for those who do not see it.
pub fn in_words(results: &[(&Language, Summary)]) -> String {
    let languages = results.iter().map(|(language, summary)| {
        let groups = drawn(language, summary).into_iter().map(|group| {
            let times = group.times.iter().map(|(name, time)| format!("{name} {}", shown(*time)));
            format!("{}: {}", group.title, times.collect::<Vec<_>>().join(", "))
        });
        format!("{}: {}", language.name, groups.collect::<Vec<_>>().join("; "))
    });
    languages.collect::<Vec<_>>().join(". ")
}

/// Returns a time with the figures that count.
fn shown(micros: f64) -> String {
    match micros {
        small if small < 10.0 => format!("{small:.1} us"),
        small if small < 1000.0 => format!("{small:.0} us"),
        medium if medium < 10_000.0 => format!("{:.1} ms", medium / 1000.0),
        large => format!("{:.0} ms", large / 1000.0),
    }
}
