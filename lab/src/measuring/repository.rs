//! The parts of git that measuring needs: the root of the sources, their commit, and a second checkout of another
//! commit.
//!
//! All operations use the `git` program. Leaves out: what is built in a checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A checkout of the project.
#[derive(Clone, Debug)]
pub struct Repository {
    /// The root folder.
    pub root: PathBuf,
}

/// The state of a checkout.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The commit, if the folder is under git.
    pub commit: Option<String>,
    /// Whether files differ from the commit.
    pub dirty: bool,
}

impl Repository {
    /// Returns the checkout that contains the current folder.
    pub fn here() -> Result<Self> {
        let here = std::env::current_dir()?;
        let root = here.ancestors().find(|folder| folder.join("lab/Cargo.toml").is_file());
        match root {
            Some(root) => Ok(Self { root: root.to_owned() }),
            None => bail!("no lab above {}; run this inside a checkout of Flatwater", here.display()),
        }
    }

    /// Returns the folder with the descriptions of peers.
    pub fn peers(&self) -> PathBuf {
        self.root.join("lab/peers")
    }

    /// Returns the folder for results, trials and second checkouts.
    pub fn out(&self) -> PathBuf {
        self.root.join("lab/out")
    }

    /// Returns the commit, and whether files differ from it. Without git this is not an error.
    pub fn state(&self) -> State {
        let commit = self.git(&["rev-parse", "HEAD"]).ok();
        let dirty = self.git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.is_empty());
        State { commit, dirty }
    }

    /// Returns the commit that a revision names.
    pub fn commit_of(&self, revision: &str) -> Result<String> {
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("`{revision}` names no commit here"))
    }

    /// Returns the git tree id of a folder at a commit, if the folder exists there.
    pub fn tree_of(&self, commit: &str, folder: &str) -> Option<String> {
        self.git(&["rev-parse", "--verify", "--quiet", &format!("{commit}:{folder}")]).ok()
    }

    /// Returns the changes between two commits, except for the lab's own records.
    pub fn diff(&self, base: &str, candidate: &str) -> Result<String> {
        self.output(&["diff", "--binary", base, candidate, "--", ".", ":!lab/experiments", ":!lab/results"])
    }

    /// Makes a second checkout of a commit. Replaces an earlier one in that folder.
    pub fn checkout(&self, commit: &str, folder: &Path) -> Result<Worktree> {
        let path = folder.to_string_lossy().into_owned();
        let worktree = Worktree { repository: self.clone(), folder: folder.to_owned() };
        worktree.remove();
        self.git(&["worktree", "prune"])?;
        self.git(&["worktree", "add", "--quiet", "--force", "--detach", &path, commit])?;
        Ok(worktree)
    }

    fn git(&self, words: &[&str]) -> Result<String> {
        self.output(words).map(|text| text.trim_end().to_owned())
    }

    fn output(&self, words: &[&str]) -> Result<String> {
        let output = Command::new("git").arg("-C").arg(&self.root).args(words).output().context("cannot start git")?;
        if !output.status.success() {
            bail!("git {}: {}", words[0], String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A second checkout, which is removed when dropped.
pub struct Worktree {
    repository: Repository,
    folder: PathBuf,
}

impl Worktree {
    /// Returns the checkout as a repository.
    pub fn repository(&self) -> Repository {
        Repository { root: self.folder.clone() }
    }

    fn remove(&self) {
        // A missing checkout is no error. If it cannot be removed, the next checkout fails with git's own message.
        let _ = self.repository.git(&["worktree", "remove", "--force", &self.folder.to_string_lossy()]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
}
