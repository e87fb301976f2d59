//! Builds the guide and the design as HTML pages with a search over both: `make book`, in `target/book`.
//!
//! Owns: links that leave the book, such as those to sources, which lead to the repository. Leaves out: the tabs of languages
//! (`tabs`); the files for language models (`llms`); whether links lead somewhere, which a test of `examples/rust` checks, for the
//! pages are read in the repository too.

use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::errors::Result;

mod llms;
mod tabs;

const REPOSITORY: &str = "https://github.com/flatwater-db/flatwater/blob/main/";

/// The page that is put beside the book, of which the pages in the repository know nothing.
const LAB: &str = "\n[The lab's page](lab.html) has every lane with all its figures, and the experiments.\n";

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut book = MDBook::load(root)?;
    let mut groups = 0;
    let mut pages = Vec::new();
    book.book.for_each_chapter_mut(|chapter| {
        // As many steps up as lead out of the folder of all pages.
        let depth = chapter.source_path.as_deref().map_or(0, |path: &Path| path.components().count());
        if let Some(path) = chapter.source_path.clone().filter(|path| path.starts_with("guide")) {
            pages.push(llms::Page { title: chapter.name.clone(), path, text: chapter.content.clone() });
        }
        if chapter.source_path.as_deref() == Some(Path::new("index.md")) {
            chapter.content.push_str(LAB);
        }
        let content = chapter.content.replace(&format!("]({}", "../".repeat(depth)), &format!("]({REPOSITORY}"));
        let (content, found) = tabs::grouped(&content);
        chapter.content = content;
        groups += found;
    });
    // Without any, the pages have another form than the one that is looked for.
    assert!(groups > 0, "no page has code of several languages");
    book.build()?;
    llms::write(&book.build_dir_for("html"), &pages)?;
    let first: PathBuf = book.build_dir_for("html").join("index.html");
    println!("{}", first.canonicalize()?.display());
    Ok(())
}
