//! How findings are printed.
//!
//! Owns: the three forms. Invariant: a finding is one line in each but JSON, which is one document. Leaves out: the exit code.

use clap::ValueEnum;
use serde_json::json;

use super::Finding;

/// The form of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// `file:line:column: text`
    Text,
    /// Commands of a workflow of GitHub, which shows them at the lines of a pull request
    Github,
    /// An array of objects
    Json,
}

pub(crate) fn print(findings: &[Finding], form: Form) {
    match form {
        Form::Text => findings.iter().for_each(|finding| {
            say!("{}:{}:{}: {}", finding.path.display(), finding.line, finding.column, text(finding));
        }),
        Form::Github => findings.iter().for_each(|finding| {
            let (path, line, column) = (finding.path.display(), finding.line, finding.column);
            let text = text(finding).replace('%', "%25").replace('\n', "%0A");
            say!("::error file={path},line={line},col={column}::{text}");
        }),
        Form::Json => {
            let each = |finding: &Finding| {
                json!({
                    "file": finding.path.display().to_string(),
                    "line": finding.line,
                    "column": finding.column,
                    "message": finding.message,
                    "hint": finding.hint,
                })
            };
            say!("{}", serde_json::Value::from(findings.iter().map(each).collect::<Vec<_>>()));
        }
    }
}

fn text(finding: &Finding) -> String {
    match &finding.hint {
        Some(hint) => format!("{} ({hint})", finding.message),
        None => finding.message.clone(),
    }
}
