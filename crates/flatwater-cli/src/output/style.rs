//! Colours, on a terminal only.
//!
//! Owns: which output has colours (<https://no-color.org>), and the few that there are. Leaves out: what is coloured.

use std::io::IsTerminal;

/// Colours or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

fn are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How standard error is painted.
pub(crate) fn errors() -> Paint {
    Paint(std::io::stderr().is_terminal() && are_wanted())
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// How standard output is painted.
pub(crate) fn output() -> Paint {
    Paint(is_terminal() && are_wanted())
}

impl Paint {
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self(false)
    }

    pub(crate) fn is_on(self) -> bool {
        self.0
    }

    pub(crate) fn error(self, text: &str) -> String {
        self.with("1;31", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
