//! Code of several languages that says the same becomes a group of tabs.
//!
//! Owns: what is such a group. Pages are plain Markdown, for they are read in the repository too: a block of Rust, then one of Python and one of
//! JavaScript. Blocks belong together that follow one another, each of another language, with nothing between two of them but a paragraph
//! that names the language of the second one in its first words; that paragraph is a part of the second tab. Without scripts a group is what it
//! was, one block after the other. Leaves out: the choice of a language (`tabs.js`).

/// The languages of tabs, by the word behind the fence.
const LANGUAGES: [(&str, &str); 3] = [("rust", "Rust"), ("python", "Python"), ("js", "Node")];

/// A block of code, or what is between two.
enum Part {
    Code(&'static str, String),
    Other(String),
}

/// Returns the page with its groups in elements of HTML, and how many there are.
pub fn grouped(page: &str) -> (String, usize) {
    let mut written = String::new();
    let mut groups = 0;
    // The tabs of the group that may go on, and the text behind it, which may belong to the next one.
    let mut tabs: Vec<(&'static str, String)> = Vec::new();
    let mut between = String::new();
    let mut end = |written: &mut String, tabs: &mut Vec<(&'static str, String)>| {
        groups += usize::from(tabs.len() > 1);
        written.push_str(&element(tabs));
        tabs.clear();
    };
    for part in parts(page) {
        match part {
            Part::Code(language, code) if leads_to(&between, language) && !has(&tabs, language) && !tabs.is_empty() => {
                tabs.push((language, format!("{}{code}", std::mem::take(&mut between))));
            }
            Part::Code(language, code) => {
                end(&mut written, &mut tabs);
                written.push_str(&std::mem::take(&mut between));
                tabs.push((language, code));
            }
            Part::Other(text) => between.push_str(&text),
        }
    }
    end(&mut written, &mut tabs);
    written.push_str(&between);
    (written, groups)
}

fn has(tabs: &[(&'static str, String)], language: &str) -> bool {
    tabs.iter().any(|(has, _)| *has == language)
}

/// Returns whether the text between two blocks belongs to the second one: none, or one paragraph that begins with its language.
fn leads_to(text: &str, language: &str) -> bool {
    let text = text.trim();
    let is_paragraph =
        !["\n\n", "```"].iter().any(|mark| text.contains(mark)) && !text.starts_with(['#', '-', '|', '>']);
    let names = |word: &str| word.trim_end_matches([',', ':', '.']) == language;
    text.is_empty() || is_paragraph && text.split_whitespace().take(6).any(names)
}

/// Returns a group as elements, and a block that is alone as it is.
fn element(tabs: &[(&'static str, String)]) -> String {
    match tabs {
        [] => String::new(),
        [(_, code)] => code.clone(),
        tabs => {
            let tab = |(language, text): &(&str, String)| {
                format!("<div class=\"language\" data-language=\"{language}\">\n\n{}\n\n</div>\n", text.trim())
            };
            format!("<div class=\"languages\">\n{}</div>\n\n", tabs.iter().map(tab).collect::<String>())
        }
    }
}

/// Returns the page in parts, which together are the page. Code is that of a language with tabs, in a block that is not indented.
fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open: Option<Option<&'static str>> = None;
    let mut code = String::new();
    for line in page.split_inclusive('\n') {
        let fence = line.starts_with("```").then(|| line.trim().trim_start_matches('`'));
        match (open, fence) {
            (None, Some(info)) => {
                let word = info.split([',', ' ']).next().unwrap_or_default();
                let language = LANGUAGES.iter().find(|(known, _)| *known == word).map(|(_, name)| *name);
                open = Some(language);
                code = line.to_owned();
            }
            (Some(language), Some("")) => {
                code.push_str(line);
                let code = std::mem::take(&mut code);
                parts.push(match language {
                    Some(language) => Part::Code(language, code),
                    None => Part::Other(code),
                });
                open = None;
            }
            (Some(_), _) => code.push_str(line),
            (None, None) => parts.push(Part::Other(line.to_owned())),
        }
    }
    if !code.is_empty() {
        parts.push(Part::Other(code));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::grouped;

    const RUST: &str = "```rust\nlet a = 1;\n```\n";
    const PYTHON: &str = "```python\na = 1\n```\n";
    const NODE: &str = "```js\nlet a = 1;\n```\n";

    #[test]
    fn blocks_that_follow_one_another_are_tabs_with_the_paragraph_that_leads_to_them() {
        let page = format!("# A\n\n{RUST}\nIn Python an `int`:\n\n{PYTHON}\n{NODE}\nMore.\n");
        let (html, groups) = grouped(&page);
        assert_eq!(groups, 1);
        let tab = |language: &str, text: &str| {
            format!("<div class=\"language\" data-language=\"{language}\">\n\n{text}\n\n</div>\n")
        };
        let tabs = [
            tab("Rust", RUST.trim()),
            tab("Python", &format!("In Python an `int`:\n\n{}", PYTHON.trim())),
            tab("Node", NODE.trim()),
        ];
        assert_eq!(html, format!("# A\n\n<div class=\"languages\">\n{}</div>\n\n\nMore.\n", tabs.concat()));
    }

    #[test]
    fn other_text_other_code_and_the_same_language_end_a_group() {
        let others = ["## Title\n", "It is so.\n", "In Python:\n\nMore.\n", "- In Python\n", "```sh\nls\n```\n", RUST];
        for other in others {
            // A second block of a language begins another group.
            let page = format!("{RUST}\n{other}\n{PYTHON}");
            let (html, groups) = grouped(&page);
            let expected = usize::from(other == RUST);
            assert_eq!(groups, expected, "{other}");
            if expected == 0 {
                assert_eq!(html, page, "nothing is lost or moved");
            }
        }
    }

    #[test]
    fn a_fence_within_a_block_and_a_block_without_end_stay_as_they_are() {
        for page in ["```text\n```rust\n```\n", "```rust\nlet a = 1;\n", "a\n\n    ```rust\n", ""] {
            assert_eq!(grouped(page), (page.to_owned(), 0), "{page}");
        }
    }
}
