//! Starts the processes of a load, lets them begin together, and adds up what they answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use setlk_timeout::{Build, Counted, Job, Setlk, Task};

/// The two programs, and the folder of the databases.
pub(crate) struct Sides {
    pub(crate) plain: PathBuf,
    pub(crate) flagged: PathBuf,
    pub(crate) trials: PathBuf,
}

/// A fresh folder with a database, removed when dropped.
pub(crate) struct Trial(tempfile::TempDir);

impl Trial {
    pub(crate) fn job(&self, setlk: Setlk, task: Task) -> Job {
        Job { db: self.0.path().join("setlk.db"), setlk, task }
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Sides {
    pub(crate) fn trial(&self) -> Result<Trial> {
        Ok(Trial(tempfile::Builder::new().prefix("trial-").tempdir_in(&self.trials)?))
    }

    pub(crate) fn prepare(&self, flagged: bool, trial: &Trial) -> Result<Build> {
        answer(self.call(flagged, &trial.job(Setlk::default(), Task::Prepare))?)
    }

    pub(crate) fn program(&self, flagged: bool) -> &Path {
        if flagged { &self.flagged } else { &self.plain }
    }

    pub(crate) fn call(&self, flagged: bool, job: &Job) -> Result<Command> {
        let mut command = Command::new(self.program(flagged));
        command.arg(serde_json::to_string(job)?);
        Ok(command)
    }
}

/// Runs a program that waits for nobody.
pub(crate) fn answer<T: DeserializeOwned>(mut command: Command) -> Result<T> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}: {errors}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Processes that have begun. Those that are left when it is dropped are ended.
pub(crate) struct Load(Vec<(Child, BufReader<ChildStdout>)>);

impl Load {
    /// Starts them, and waits until each says that it is ready, if it does more than one thing.
    pub(crate) fn start(jobs: &[Job], mut call: impl FnMut(&Job) -> Result<Command>) -> Result<Self> {
        let mut load = Self(Vec::new());
        for job in jobs {
            let mut command = call(job)?;
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
            let output = BufReader::new(child.stdout.take().context("standard output is piped")?);
            load.0.push((child, output));
        }
        if jobs.iter().any(|job| matches!(job.task, Task::Mixed(_) | Task::Hold(_))) {
            for (_, output) in &mut load.0 {
                let mut line = String::new();
                output.read_line(&mut line)?;
                ensure!(line == "ready\n", "a process of the load ended before it began");
            }
        }
        Ok(load)
    }

    /// Lets them begin, waits until they end, and adds up what they counted.
    pub(crate) fn finish(mut self) -> Result<Counted> {
        let mut all = Counted::default();
        for text in self.end()? {
            all.add(serde_json::from_str(&text)?);
        }
        Ok(all)
    }

    /// Lets them go on, waits until they end, and returns what they printed.
    pub(crate) fn end(&mut self) -> Result<Vec<String>> {
        for (child, _) in &mut self.0 {
            // Who waits for nobody may have ended already.
            let _ = child.stdin.take().context("standard input is piped")?.write_all(b"\n");
        }
        let mut texts = Vec::new();
        for (child, output) in &mut self.0 {
            let mut text = String::new();
            output.read_to_string(&mut text)?;
            let status = child.wait()?;
            ensure!(status.success(), "a process of the load failed: {status}");
            texts.push(text);
        }
        Ok(texts)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            // It has ended, or nobody waits for it any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
