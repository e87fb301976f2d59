//! Programs of the same code whose functions lie in another order.
//!
//! Owns: what links them, beside the program that Cargo builds. Where a function lies decides how fast the processor fetches
//! it: the same code differs by several percent from one order to another, and any change of the sources makes another order.
//! Leaves out: which trial runs which program (`session`).

use std::env::consts::ARCH;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Links a program as it is asked to, and then in as many other orders as `LAB_LAYOUTS` says.
const LINK: &str = include_str!("link.sh");

/// The orders that a peer's program is linked in.
#[derive(Clone, Debug)]
pub struct Layouts {
    count: u32,
    linker: PathBuf,
}

impl Layouts {
    /// Writes the linker of `count` orders into a folder. Its name tells rustc that it takes the arguments of a C compiler.
    pub fn new(count: u32, folder: &Path) -> Result<Self> {
        let linker = std::path::absolute(folder.join("layouts-cc"))?;
        fs::write(&linker, LINK).with_context(|| format!("cannot write {}", linker.display()))?;
        fs::set_permissions(&linker, fs::Permissions::from_mode(0o755))?;
        Ok(Self { count, linker })
    }

    /// Makes a build with Cargo link the orders too.
    pub fn set(&self, build: &mut Command) {
        build.env(format!("CARGO_TARGET_{}_UNKNOWN_LINUX_GNU_LINKER", ARCH.to_uppercase()), &self.linker);
        build.env("LAB_LAYOUTS", self.count.to_string());
    }

    /// Returns the program of one run, given the one that Cargo built.
    pub fn of_run(&self, program: &Path, run: u32) -> Result<PathBuf> {
        let number = run % self.count + 1;
        let of_run = PathBuf::from(format!("{}.{number}", program.display()));
        if !of_run.is_file() {
            bail!("{} was not linked: other orders need Linux, lld, and a program that Cargo builds", of_run.display());
        }
        Ok(of_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A linker that writes its arguments to its last one.
    const CC: &str = "#!/bin/sh\nfor last in \"$@\"; do :; done\necho \"$*\" > \"$last\"\n";

    fn link(folder: &Path, output: &Path) {
        let cc = folder.join("cc");
        fs::write(&cc, CC).unwrap();
        fs::set_permissions(&cc, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(folder.join("layouts-cc"));
        let ran = command.args(["part.o", "-o"]).arg(output).env("PATH", path).env("LAB_LAYOUTS", "2").status();
        assert!(ran.unwrap().success());
    }

    #[test]
    fn a_peer_is_linked_in_each_order_and_other_programs_once() {
        let folder = tempfile::tempdir().unwrap();
        let layouts = Layouts::new(2, folder.path()).unwrap();
        let release = folder.path().join("release");
        fs::create_dir_all(release.join("deps")).unwrap();
        link(folder.path(), &release.join("deps/peer_of_a_test-00ff"));
        link(folder.path(), &release.join("deps/build_script-00ff"));

        let program = release.join("peer-of-a-test");
        let seeds = [0, 1, 2].map(|run| fs::read_to_string(layouts.of_run(&program, run).unwrap()).unwrap());
        assert!(seeds[0].contains("--shuffle-sections=.text*=1"), "{}", seeds[0]);
        assert!(seeds[1].contains("--shuffle-sections=.text*=2"), "{}", seeds[1]);
        assert_eq!(seeds[2], seeds[0]);
        assert_eq!(fs::read_dir(&release).unwrap().count(), 3, "two orders, and `deps`");
        let missing = layouts.of_run(&release.join("another"), 0).unwrap_err().to_string();
        assert!(missing.contains("another.1 was not linked"), "{missing}");
    }
}
