//! `flatwater man`: the manual pages.

use std::io::Write;
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};

/// Print the manual page, or write those of all commands into a folder
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder, which must exist
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, command: clap::Command) -> Outcome {
    if let Some(folder) = &arguments.dir {
        return clap_mangen::generate_to(command, folder)
            .map_err(Failure::system(format!("writing into {}", folder.display())));
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.and_then(|()| std::io::stdout().write_all(&page)).map_err(Failure::system("writing the page"))
}
