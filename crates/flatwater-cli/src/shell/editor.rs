//! Lines as they are typed on a terminal.
//!
//! Owns: the editor, its prompt, and the file of the history. Invariants: a text is handed over when its last statement is complete;
//! only the user may read the history. Leaves out: what is completed and highlighted.

use std::borrow::Cow;
use std::path::PathBuf;

use etcetera::BaseStrategy;
use flatwater::Database;
use reedline::{
    ColumnarMenu, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult, Validator,
    default_emacs_keybindings,
};

use super::completer::Names;
use super::highlight::Highlight;
use crate::failure::{Failure, Outcome};
use crate::output::style;
use crate::sql::statements::is_complete;

/// So many lines the history has.
const LINES: usize = 10_000;
const MENU: &str = "completion";

pub(super) enum Typed {
    Text(String),
    /// Ctrl-C, which leaves what was typed.
    Cleared,
    End,
}

pub(super) struct Editor(Reedline);

impl Editor {
    pub(super) fn new(db: &Database) -> Outcome<Self> {
        let mut keys = default_emacs_keybindings();
        let next = vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext];
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(next));
        let menu = ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU)));
        let mut editor = Reedline::create()
            .with_validator(Box::new(Complete))
            .with_completer(Box::new(Names::new(db)))
            .with_menu(menu)
            .with_quick_completions(true)
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_ansi_colors(style::output().is_on());
        if style::output().is_on() {
            editor = editor.with_highlighter(Box::new(Highlight));
        }
        // Without a folder, or one that cannot be written, the history is that of this shell.
        if let Some(history) = history_file().and_then(|file| FileBackedHistory::with_file(LINES, file).ok()) {
            editor = editor.with_history(Box::new(history));
        }
        Ok(Self(editor))
    }

    pub(super) fn read(&mut self, in_transaction: bool) -> Outcome<Typed> {
        let signal = self.0.read_line(&Prompts { in_transaction });
        match signal.map_err(Failure::system("reading the terminal"))? {
            Signal::Success(text) if matches!(text.trim(), "quit" | "exit") => Ok(Typed::End),
            Signal::Success(text) => Ok(Typed::Text(text)),
            Signal::CtrlD => Ok(Typed::End),
            _ => Ok(Typed::Cleared),
        }
    }
}

/// The file of the history, which is made for the user alone.
fn history_file() -> Option<PathBuf> {
    let folders = etcetera::choose_base_strategy().ok()?;
    let folder = folders.state_dir().unwrap_or_else(|| folders.data_dir()).join("flatwater");
    std::fs::create_dir_all(&folder).ok()?;
    let file = folder.join("history");
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&file).ok()?;
    Some(file)
}

struct Complete;

impl Validator for Complete {
    fn validate(&self, text: &str) -> ValidationResult {
        let is_command = text.starts_with('.') || matches!(text.trim(), "quit" | "exit");
        if is_command || is_complete(text) { ValidationResult::Complete } else { ValidationResult::Incomplete }
    }
}

struct Prompts {
    in_transaction: bool,
}

impl Prompt for Prompts {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(if self.in_transaction { "flatwater*" } else { "flatwater" })
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("     ...> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(history: {}) ", search.term))
    }
}
