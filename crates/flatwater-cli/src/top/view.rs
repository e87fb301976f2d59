//! What `flatwater top` shows.
//!
//! Owns: its lines, on a terminal and as text. Leaves out: finding out what they say.

use std::io::Result;
use std::path::Path;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph};

use super::{Reader, Seen};
use crate::output::style;
use crate::output::text::visible;

/// The lines, the first of which is about the WAL.
pub(super) fn text(path: &Path, seen: &Seen) -> Vec<String> {
    let index = &seen.index;
    let mut lines = vec![visible(&path.display().to_string())];
    lines.push(format!("WAL     {} bytes, {} frames, {} of them copied", seen.wal_bytes, index.frames, index.copied));
    let who = |process: Option<i64>| process.map_or_else(|| "nobody".to_owned(), name);
    lines.push(format!("writes  {}", who(seen.writer)));
    lines.push(format!("copies  {}", who(seen.checkpointer)));
    lines.extend(seen.in_line.map(|processes| format!("turns   {processes} processes in line to write")));
    lines.extend(seen.readers.iter().map(|(reader, time)| reads(reader, *time, seen)));
    if seen.readers.is_empty() {
        lines.push("reads   nobody".to_owned());
    }
    lines
}

fn reads(reader: &Reader, time: Duration, seen: &Seen) -> String {
    let who = name(reader.process);
    let behind = match reader.mark {
        Some(mark) if mark < seen.index.frames => {
            format!("{} frames behind, which cannot be copied", seen.index.frames - mark)
        }
        Some(_) => "the newest frame: the WAL cannot start over".to_owned(),
        None => "the database alone".to_owned(),
    };
    format!("reads   {who}, {behind}; for {:.1} s or longer", time.as_secs_f64())
}

/// A process, with its name.
fn name(process: i64) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("{} ({process})", visible(name.trim()))
}

pub(super) fn draw(frame: &mut Frame<'_>, path: &Path, seen: &Result<Seen>) {
    let [gauge, lines] = Layout::vertical([Constraint::Length(3), Constraint::Min(3)]).areas(frame.area());
    let (share, shown) = match seen {
        Ok(seen) => (copied(seen), text(path, seen)),
        Err(error) => (1.0, vec![visible(&path.display().to_string()), error.to_string()]),
    };
    let title = Block::bordered().title("frames of the WAL that are copied");
    frame.render_widget(Gauge::default().block(title).ratio(share), gauge);
    let is_painted = style::output().is_on();
    let blocks = |line: &str| is_painted && line.contains("cannot be copied");
    let style = |line: &str| if blocks(line) { Style::new().red() } else { Style::new() };
    let shown: Vec<Line<'_>> = shown.iter().map(|line| Line::styled(line.as_str(), style(line))).collect();
    let block = Block::bordered().title("now").title_bottom("q ends");
    frame.render_widget(Paragraph::new(shown).block(block), lines);
}

fn copied(seen: &Seen) -> f64 {
    match seen.index.frames {
        0 => 1.0,
        frames => (f64::from(seen.index.copied) / f64::from(frames)).clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::wal_index::WalIndex;
    use super::*;

    #[test]
    fn a_reader_that_is_behind_says_what_it_holds_up() {
        let index = WalIndex { page_bytes: 4096, frames: 10, copied: 4, marks: [0; 5] };
        let reader = |mark| (Reader { process: 0, mark }, Duration::from_millis(1500));
        let readers = vec![reader(Some(4)), reader(Some(10)), reader(None)];
        let seen = Seen { wal_bytes: 41_232, index, writer: None, checkpointer: None, in_line: Some(2), readers };
        let lines = text(Path::new("a.db"), &seen);
        assert_eq!(lines[1], "WAL     41232 bytes, 10 frames, 4 of them copied");
        assert_eq!(lines[4], "turns   2 processes in line to write");
        assert_eq!(lines[5], "reads    (0), 6 frames behind, which cannot be copied; for 1.5 s or longer");
        assert!(lines[6].contains("the newest frame") && lines[7].contains("the database alone"), "{lines:?}");
        assert_eq!(copied(&seen), 0.4);
    }
}
