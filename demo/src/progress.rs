//! What is going on, on standard error.
//!
//! Owns: the bar of a terminal; where there is none, one plain line per act. Leaves out: the report, which goes to
//! standard output.

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

    /// The next act begins.
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

    /// Prints while the bar is out of the way.
    pub(crate) fn aside(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

/// What is printed next stands where the bar was.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
