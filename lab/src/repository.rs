//! Git, as far as measuring needs it: where the sources are, which commit they are, and a second checkout of another.
//!
//! Everything goes through the `git` program. Leaves out what is built in a checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A checkout of the project.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Its root.
    pub root: PathBuf,
}

/// What a checkout holds.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The commit, if it is under git.
    pub commit: Option<String>,
    /// Whether files differ from it.
    pub dirty: bool,
}

impl Repository {
    /// The checkout that the current folder is in.
    pub fn here() -> Result<Self> {
        let here = std::env::current_dir()?;
        let root = here.ancestors().find(|folder| folder.join("lab/Cargo.toml").is_file());
        match root {
            Some(root) => Ok(Self { root: root.to_owned() }),
            None => bail!("no lab above {}; run this inside a checkout of Flatwater", here.display()),
        }
    }

    /// Where peers are described.
    pub fn peers(&self) -> PathBuf {
        self.root.join("lab/peers")
    }

    /// Where results, trials and second checkouts go.
    pub fn out(&self) -> PathBuf {
        self.root.join("lab/out")
    }

    /// The commit, and whether files differ from it. Not an error where there is no git.
    pub fn state(&self) -> State {
        let commit = self.git(&["rev-parse", "HEAD"]).ok();
        let dirty = self.git(&["status", "--porcelain"]).is_ok_and(|changes| !changes.is_empty());
        State { commit, dirty }
    }

    /// The commit that a revision names.
    pub fn commit_of(&self, revision: &str) -> Result<String> {
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("`{revision}` names no commit here"))
    }

    /// The name of a folder's content at a commit, if it is there.
    pub fn tree_of(&self, commit: &str, folder: &str) -> Option<String> {
        self.git(&["rev-parse", "--verify", "--quiet", &format!("{commit}:{folder}")]).ok()
    }

    /// The changes between two commits, but for what the lab itself keeps.
    pub fn diff(&self, base: &str, candidate: &str) -> Result<String> {
        self.output(&["diff", "--binary", base, candidate, "--", ".", ":!lab/experiments", ":!lab/results"])
    }

    /// A second checkout of a commit; what stands there from an earlier one is replaced.
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

/// A second checkout, removed when dropped.
pub struct Worktree {
    repository: Repository,
    folder: PathBuf,
}

impl Worktree {
    /// The checkout as a repository of its own.
    pub fn repository(&self) -> Repository {
        Repository { root: self.folder.clone() }
    }

    fn remove(&self) {
        // Nothing there is fine; what cannot be removed makes the next checkout fail with git's own words.
        let _ = self.repository.git(&["worktree", "remove", "--force", &self.folder.to_string_lossy()]);
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.remove();
    }
}
