//! The text of an experiment: its template, and the content that it must have. Pure.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// The sections in order, each with a description of its content.
const SECTIONS: [(&str, &str); 6] = [
    ("Problem", "What is slow or uncertain, with the figure that shows it."),
    ("Hypothesis", "What the change will do to which lane, and why; what would refute it."),
    ("Approach", "What was changed, and how it was measured: the command."),
    ("Results", "The figures, the verdicts, the lanes that were to stay as they are."),
    ("Decision", "Accepted or rejected, in the first sentence, with the reason."),
    ("What would reopen it", "The circumstance in which the decision no longer holds."),
];

/// The outcome of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The change was accepted.
    Accepted,
    /// The change was rejected.
    Rejected,
}

/// A finished record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The title: what was tried.
    pub title: String,
    /// The outcome.
    pub status: Status,
    /// The date it was opened.
    pub opened: String,
    /// The date of the decision.
    pub decided: String,
    /// The lanes it concerns.
    pub lanes: Vec<String>,
    /// The lanes that the change cannot affect.
    pub controls: Vec<String>,
    /// The first paragraph of the decision.
    pub decision: String,
}

/// Converts a title to a file name.
pub fn slug(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

/// Returns an empty record.
pub fn template(title: &str, today: &str) -> String {
    let mut text = format!(
        "# {title}\n\n- Status: In review\n- Opened: {today}\n- Decided: <!-- date -->\n- Lanes: <!-- names, with commas -->\n\
         - Control lanes: <!-- lanes that the change cannot reach, or none -->\n"
    );
    for (name, hint) in SECTIONS {
        text += &format!("\n## {name}\n\n<!-- {hint} -->\n");
    }
    text
}

impl Record {
    /// Parses a record. An error names the first thing that is missing.
    pub fn parse(text: &str) -> Result<Self> {
        let text = without_comments(text);
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim).unwrap_or_default();
        if title.is_empty() {
            bail!("it has no title");
        }
        for (name, _) in SECTIONS {
            if section(&text, name).is_none_or(|body| body.is_empty()) {
                bail!("section `{name}` is empty");
            }
        }
        let status = match field(&text, "Status")?.as_str() {
            "Accepted" => Status::Accepted,
            "Rejected" => Status::Rejected,
            other => bail!("its status is `{other}`; it must be Accepted or Rejected"),
        };
        let lanes = names(&field(&text, "Lanes")?);
        let controls = names(&field(&text, "Control lanes")?);
        if lanes.is_empty() {
            bail!("it names no lane");
        }
        let decision = section(&text, "Decision").unwrap_or_default();
        let decision = decision.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let word = format!("{status:?}");
        if !decision.starts_with(&word) {
            bail!("its decision must begin with `{word}`, as its status says");
        }
        let (opened, decided) = (date(&text, "Opened")?, date(&text, "Decided")?);
        if decided < opened {
            bail!("it was decided on {decided}, before it was opened on {opened}");
        }
        Ok(Self { title: title.to_owned(), status, opened, decided, lanes, controls, decision })
    }
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept += before;
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// Returns the text of a section, trimmed.
fn section(text: &str, name: &str) -> Option<String> {
    let (_, after) = text.split_once(&format!("\n## {name}\n"))?;
    Some(after.split("\n## ").next().unwrap_or_default().trim().to_owned())
}

/// Returns the value of a line `- Name: value` before the first section.
fn field(text: &str, name: &str) -> Result<String> {
    let header = text.split("\n## ").next().unwrap_or_default();
    let value = header.lines().find_map(|line| line.strip_prefix(&format!("- {name}:")));
    let value = value.with_context(|| format!("line `- {name}: ...` is not there"))?.trim();
    if value.is_empty() {
        bail!("`{name}` is empty");
    }
    Ok(value.to_owned())
}

fn date(text: &str, name: &str) -> Result<String> {
    let value = field(text, name)?;
    humantime::parse_rfc3339(&format!("{value}T00:00:00Z")).with_context(|| format!("`{name}` is no date: {value}"))?;
    Ok(value)
}

fn names(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "none");
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a complete record.
    fn finished() -> String {
        let mut text = template("Try it", "2020-01-02")
            .replace("In review", "Rejected")
            .replace("<!-- date -->", "2020-01-03")
            .replace("<!-- names, with commas -->", "a, b")
            .replace("<!-- lanes that the change cannot reach, or none -->", "none");
        for (name, hint) in SECTIONS {
            let body = if name == "Decision" { "Rejected, because\nit is slower.\n\nMore." } else { "Something." };
            text = text.replace(&format!("<!-- {hint} -->"), body);
        }
        text
    }

    #[test]
    fn a_finished_record_is_read() {
        let record = Record::parse(&finished()).unwrap();
        assert_eq!((record.title.as_str(), record.status), ("Try it", Status::Rejected));
        assert_eq!((record.opened.as_str(), record.decided.as_str()), ("2020-01-02", "2020-01-03"));
        assert_eq!(record.lanes, ["a", "b"]);
        assert!(record.controls.is_empty());
        assert_eq!(record.decision, "Rejected, because it is slower.");
    }

    #[test]
    fn what_a_record_lacks_is_named() {
        let table = [
            ("# Try it", "# ", "no title"),
            ("Status: Rejected", "Status: In review", "In review"),
            ("- Status: Rejected\n", "", "`- Status: ...` is not there"),
            ("Decided: 2020-01-03", "Decided: soon", "no date: soon"),
            ("Decided: 2020-01-03", "Decided: 2019-01-01", "before it was opened"),
            ("Lanes: a, b", "Lanes:", "`Lanes` is empty"),
            ("Lanes: a, b", "Lanes: ,", "no lane"),
            ("Rejected, because", "Because", "must begin with `Rejected`"),
            ("Something.", "<!-- later -->", "`Problem` is empty"),
        ];
        for (from, to, expected) in table {
            let text = finished().replacen(from, to, 1);
            let error = format!("{:#}", Record::parse(&text).unwrap_err());
            assert!(error.contains(expected), "{from} -> {to}: {error}");
        }
    }

    #[test]
    fn the_template_itself_is_not_finished() {
        assert!(Record::parse(&template("Try it", "2020-01-02")).is_err());
    }

    #[test]
    fn a_slug_has_small_letters_figures_and_hyphens() {
        assert_eq!(slug("PASSIVE every 500: (a) try"), "passive-every-500-a-try");
        assert_eq!(slug("  ...  "), "");
    }
}
