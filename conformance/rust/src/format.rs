//! The format of scenarios (docs/design/conformance.md).
//!
//! Owns: the types that the files are read as. Pure. Invariant: a field that is not known is an error. Leaves out: steps
//! (`step`), their fields (`fields`) and values (`value`).

use serde::Deserialize;

use crate::fields::Options;
use crate::step::{self, Step, Verb};

/// A file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// The topic.
    pub about: String,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// What a program does, and what it gets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// A fact.
    pub name: String,
    /// Why it cannot run in memory.
    pub needs_a_file: Option<String>,
    #[serde(default)]
    pub(crate) options: Options,
    pub(crate) steps: Vec<Step>,
}

impl Scenario {
    /// Returns the kinds of error that its steps expect.
    #[must_use]
    pub fn kinds(&self) -> Vec<&str> {
        step::kinds(&self.steps)
    }

    /// Returns true if the option `types` says what columns mean, which Rust does not have: there a type of the program does.
    #[must_use]
    pub fn has_types(&self) -> bool {
        self.options.types.is_some()
    }

    /// Returns true if a step makes a file that may be no database.
    pub(crate) fn writes_file(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.verb, Verb::WriteFile { .. }))
    }
}
