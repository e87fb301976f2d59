//! The guide for language models: `llms.txt` lists its pages, `llms-full.txt` has all of them, and beside each page is its Markdown
//! (<https://llmstxt.org>).
//!
//! Owns: what such a reader is told first, because other libraries differ there. Leaves out: the design, which is for contributors.

use std::fs;
use std::path::{Path, PathBuf};

use mdbook_driver::errors::Result;

/// What is wrong in programs that are written as for other libraries.
const INTRODUCTION: &str = "# Flatwater

> SQLite for async Rust, Python and Node. A file has one writer and several readers in each process; short statements run at once on the
> caller's thread, the others on threads of the database; writes that wait at the same time share a commit.

- The database is the pool: open a file once, and use the handle in every task. There is no pool, cursor, `fetchall` or `commit`.
- A write is committed when its call returns. BEGIN, COMMIT, ROLLBACK and SAVEPOINT as text are refused: use `transaction`.
- `execute` refuses statements that return rows, `query` those that return none; `run` takes either.
- Values are bound, never put into the text. One value in Rust and Python is a tuple with a comma: `(id,)`.
- Rust: a call is a future of no runtime, and does nothing until it is awaited; `.wait()` is for plain threads only.
- Python: `flatwater.connect` is awaited or an `async with`; `executemany` and `executescript` are one word. Rows have names and positions.
- Node: options of a call are the last argument, times are milliseconds, `await db.close()`.
- One SQLite library in a process may open a file: not `sqlite3`, better-sqlite3 or `node:sqlite` beside it.
- Constraint errors: `error.is_unique_violation()` and `error.constraint()` in Rust, `except flatwater.UniqueViolation` in Python,
  `error.constraint?.kind === \"unique\"` in Node.
";

/// A page of the guide.
pub struct Page {
    /// Its title.
    pub title: String,
    /// Its path in the book.
    pub path: PathBuf,
    /// Its Markdown.
    pub text: String,
}

/// Writes the files into the folder of the book.
pub fn write(folder: &Path, pages: &[Page]) -> Result<()> {
    fs::write(folder.join("llms.txt"), list(pages))?;
    let all = pages.iter().map(|page| format!("\n\n---\n\n{}", page.text.trim()));
    fs::write(folder.join("llms-full.txt"), format!("{INTRODUCTION}{}\n", all.collect::<String>()))?;
    for page in pages {
        fs::write(folder.join(&page.path), &page.text)?;
    }
    Ok(())
}

fn list(pages: &[Page]) -> String {
    let line = |page: &Page| {
        let about = Some(headings(&page.text)).filter(|found| !found.is_empty()).map(|found| format!(": {found}"));
        format!("- [{}]({}){}\n", page.title, page.path.display(), about.unwrap_or_default())
    };
    format!("{INTRODUCTION}\n## Guide\n\n{}", pages.iter().map(line).collect::<String>())
}

/// Returns the headings of the page below its title: what it answers.
fn headings(text: &str) -> String {
    let prose = text.split("```").step_by(2);
    let headings = prose.flat_map(str::lines).filter_map(|line| line.strip_prefix("## "));
    headings.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn a_page_is_told_by_its_headings_and_not_by_its_code() {
        let text = "# A\n\n## One\n\n```sh\n## no\n```\n\n### Part\n\n## Two\n";
        assert_eq!(headings(text), "One; Two");
        assert_eq!(headings("# A\n\nIt is so."), "");
    }
}
