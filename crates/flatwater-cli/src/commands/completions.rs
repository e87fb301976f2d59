//! `flatwater completions`: a script that completes the arguments in a shell.
//!
//! Leaves out: where a shell looks for it.

use std::io::Write;

use clap_complete::Shell;

use crate::failure::{Failure, Outcome};

/// Print a script that completes the arguments of flatwater in a shell
#[derive(clap::Args)]
pub(crate) struct Arguments {
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, command: &mut clap::Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, command, "flatwater", &mut script);
    std::io::stdout().write_all(&script).map_err(Failure::system("writing the script"))
}
