//! A bar that shows how far a command is, on a terminal.
//!
//! Owns: its looks. Invariant: without a terminal on standard error nothing is drawn. Leaves out: counting.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Returns a bar of so many bytes, or one without an end.
pub(crate) fn bytes(total: Option<u64>, what: &str) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr_with_hz(10),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(total, target).with_message(what.to_owned());
    let form = match total {
        Some(_) => "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}, {eta} left",
        None => "{msg} {spinner} {bytes} {bytes_per_sec}",
    };
    bar.set_style(ProgressStyle::with_template(form).expect("the template is valid"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
