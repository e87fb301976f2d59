//! The progress of the demo, on standard error.
//!
//! Owns: the progress bar on a terminal, and one plain line per act where there is no terminal. Leaves out: the report,
//! which goes to standard output.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(acts: u64) -> Self {
        let bar = ProgressBar::new(acts);
        if let Ok(style) = ProgressStyle::with_template("[{bar:24}] {elapsed:>3}  {msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// Shows that the next act begins.
    pub(crate) fn act(&self, sentence: &str) {
        if self.0.is_hidden() {
            eprintln!("{sentence}");
            return;
        }
        if !self.0.message().is_empty() {
            self.0.inc(1);
        }
        self.0.set_message(sentence.to_owned());
    }

    /// Calls `print` while the bar is hidden.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

/// Clears the bar, so that the next output takes its place.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
