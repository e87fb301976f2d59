//! The figures in Prometheus' text format (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Owns: names, labels and escapes of that format. Pure but for reading the figures. Leaves out: what is counted (`figures`), and the
//! endpoint.

use std::fmt::Write;

use flatwater::Database;

use crate::figures::{FIGURES, Figure, Kind};

/// Returns the figures of these databases, each with the label `database`: the answer to a request for `/metrics`,
/// of content type `text/plain; version=0.0.4`. It does not block, and costs no statement.
///
/// ```
/// # async fn f() -> flatwater::Result<()> {
/// let db = flatwater::Database::open("app.db").await?;
/// let text = flatwater_telemetry::prometheus_text([("app", &db)]);
/// assert!(text.contains("flatwater_wal_size_bytes{database=\"app\"}"));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn prometheus_text<'a>(databases: impl IntoIterator<Item = (&'a str, &'a Database)>) -> String {
    let databases: Vec<_> = databases.into_iter().map(|(label, database)| (escaped(label), database.stats())).collect();
    let mut text = String::new();
    for figure in FIGURES {
        let name = name_of(figure);
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", figure.help, figure.kind.name());
        for (label, stats) in &databases {
            let _ = writeln!(text, "{name}{{database=\"{label}\"}} {}", (figure.read)(stats));
        }
    }
    text
}

/// Returns a figure's name in Prometheus' form, such as `flatwater_wal_size_bytes`.
fn name_of(figure: &Figure) -> String {
    let unit = match figure.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let total = if figure.kind == Kind::Counter { "_total" } else { "" };
    format!("{}{unit}{total}", figure.name.replace('.', "_"))
}

/// Returns the value of a label as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_have_any_text() {
        assert_eq!(escaped("a \"b\" \\ c\nd"), r#"a \"b\" \\ c\nd"#);
    }

    #[test]
    fn names_say_unit_and_kind() {
        let names: Vec<String> = FIGURES.iter().map(name_of).collect();
        for name in ["flatwater_wal_size_bytes", "flatwater_turns_waited_seconds_total", "flatwater_live_queries"] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
    }
}
