//! Colours of SQL while it is typed.
//!
//! Owns: which token has which. Invariant: the text stays as it was typed. Leaves out: finding the tokens, which the library does.

use flatwater::bindings::tokens;
use nu_ansi_term::{Color, Style};
use reedline::{Highlighter, StyledText};

use super::words::KEYWORDS;

pub(super) struct Highlight;

impl Highlighter for Highlight {
    fn highlight(&self, line: &str, _: usize) -> StyledText {
        let mut styled = StyledText::new();
        if line.starts_with('.') {
            styled.push((Color::Magenta.normal(), line.to_owned()));
            return styled;
        }
        for (kind, token, gap) in tokens(line) {
            let of_gap = if gap.trim().is_empty() { Style::new() } else { Style::new().dimmed() };
            for (style, text) in [(of_gap, gap), (style(kind, token), token)] {
                if !text.is_empty() {
                    styled.push((style, text.to_owned()));
                }
            }
        }
        styled
    }
}

fn style(kind: &str, token: &str) -> Style {
    match kind {
        "word" if KEYWORDS.iter().any(|keyword| token.eq_ignore_ascii_case(keyword)) => Color::Blue.bold(),
        "word" if token.starts_with(|c: char| c.is_ascii_digit()) => Color::Cyan.normal(),
        "text" => Color::Green.normal(),
        "name" => Color::Yellow.normal(),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_stays_as_it_is() {
        for line in ["SELECT 'it''s', \"a\", 1.5 -- end\n FROM t;", "select 'open", "/* a */ x", ".mode box", "é ?1"] {
            let styled = Highlight.highlight(line, 0);
            assert_eq!(styled.buffer.iter().map(|(_, text)| &**text).collect::<String>(), line);
        }
        let styled = Highlight.highlight("select a", 0);
        assert_eq!(styled.buffer[0], (Color::Blue.bold(), "select".to_owned()));
    }
}
