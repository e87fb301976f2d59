//! What `flatwater top` shows.
//!
//! Owns: its lines, on a terminal and as text. Leaves out: finding out what they say.

use std::path::Path;
use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph};

use super::{Reader, Seen, Wal, programs};
use crate::output::style;
use crate::output::text::visible;

/// The lines: those of the WAL, and then those of programs that show their figures.
pub(super) fn text(path: &Path, seen: &Seen) -> Vec<String> {
    let mut lines = vec![visible(&path.display().to_string())];
    match &seen.wal {
        Ok(wal) => lines.extend(of_wal(wal)),
        Err(error) => lines.push(error.to_string()),
    }
    for program in &seen.programs {
        lines.push(String::new());
        lines.extend(programs::lines(program, seen.at));
    }
    lines
}

fn of_wal(wal: &Wal) -> Vec<String> {
    let index = &wal.index;
    let mut lines =
        vec![format!("WAL     {} bytes, {} frames, {} of them copied", wal.wal_bytes, index.frames, index.copied)];
    let who = |process: Option<i64>| process.map_or_else(|| "nobody".to_owned(), name);
    lines.push(format!("writes  {}", who(wal.writer)));
    lines.push(format!("copies  {}", who(wal.checkpointer)));
    lines.extend(wal.in_line.map(|processes| format!("turns   {processes} processes in line to write")));
    lines.extend(wal.readers.iter().map(|(reader, time)| reads(reader, *time, wal)));
    if wal.readers.is_empty() {
        lines.push("reads   nobody".to_owned());
    }
    lines
}

fn reads(reader: &Reader, time: Duration, wal: &Wal) -> String {
    let who = name(reader.process);
    let behind = match reader.mark {
        Some(mark) if mark < wal.index.frames => {
            format!("{} frames behind, which cannot be copied", wal.index.frames - mark)
        }
        Some(_) => "the newest frame: the WAL cannot start over".to_owned(),
        None => "the database alone".to_owned(),
    };
    format!("reads   {who}, {behind}; for {:.1} s or longer", time.as_secs_f64())
}

/// What a line has in it that says who blocks others.
const BLOCKS: [&str; 3] = ["cannot be copied", "  the last time by ", "  writer  held by "];

/// A process, with its name.
fn name(process: i64) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("{} ({process})", visible(name.trim()))
}

pub(super) fn draw(frame: &mut Frame<'_>, path: &Path, seen: &Seen) {
    let [gauge, lines] = Layout::vertical([Constraint::Length(3), Constraint::Min(3)]).areas(frame.area());
    let (share, shown) = (seen.wal.as_ref().map_or(1.0, copied), text(path, seen));
    let title = Block::bordered().title("frames of the WAL that are copied");
    frame.render_widget(Gauge::default().block(title).ratio(share), gauge);
    let is_painted = style::output().is_on();
    let blocks = |line: &str| is_painted && BLOCKS.iter().any(|words| line.contains(words));
    let style = |line: &str| if blocks(line) { Style::new().red() } else { Style::new() };
    let shown: Vec<Line<'_>> = shown.iter().map(|line| Line::styled(line.as_str(), style(line))).collect();
    let block = Block::bordered().title("now").title_bottom("q ends");
    frame.render_widget(Paragraph::new(shown).block(block), lines);
}

fn copied(wal: &Wal) -> f64 {
    match wal.index.frames {
        0 => 1.0,
        frames => (f64::from(wal.index.copied) / f64::from(frames)).clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::wal_index::WalIndex;
    use super::*;

    #[test]
    fn a_reader_that_is_behind_says_what_it_holds_up() {
        let index = WalIndex { page_bytes: 4096, frames: 10, copied: 4, marks: [0; 5] };
        let reader = |mark| (Reader { process: 0, mark }, Duration::from_millis(1500));
        let readers = vec![reader(Some(4)), reader(Some(10)), reader(None)];
        let wal = Wal { wal_bytes: 41_232, index, writer: None, checkpointer: None, in_line: Some(2), readers };
        let share = copied(&wal);
        let seen = Seen { wal: Ok(wal), programs: Vec::new(), at: SystemTime::now() };
        let lines = text(Path::new("a.db"), &seen);
        assert_eq!(lines[1], "WAL     41232 bytes, 10 frames, 4 of them copied");
        assert_eq!(lines[4], "turns   2 processes in line to write");
        assert_eq!(lines[5], "reads    (0), 6 frames behind, which cannot be copied; for 1.5 s or longer");
        assert!(lines[6].contains("the newest frame") && lines[7].contains("the database alone"), "{lines:?}");
        assert_eq!(share, 0.4);
    }
}
