//! The texts in sources of TypeScript, JavaScript and Python: literals that are the first argument of a call of Flatwater, and templates
//! with the tag `sql`.
//!
//! Owns: finding them in the syntax tree. Invariants: what is not a literal is not judged; a value in a template is a parameter. Leaves
//! out: whose method a call is, which only the types of the program say.

use tree_sitter::{Node, Parser};

use super::Text;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    TypeScript,
    Tsx,
    Python,
}

/// The methods that take SQL, without capitals and underscores.
const METHODS: [&str; 15] = [
    "execute",
    "executemany",
    "query",
    "queryjson",
    "querymany",
    "queryone",
    "queryoptional",
    "queryoptionalvalue",
    "queryvalue",
    "queryvalues",
    "run",
    "stream",
    "batches",
    "live",
    "prepare",
];

pub(super) fn texts(content: &str, language: Language) -> Vec<Text> {
    let grammar = match language {
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Language::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::Python => tree_sitter_python::LANGUAGE.into(),
    };
    let mut parser = Parser::new();
    if parser.set_language(&grammar).is_err() {
        return Vec::new();
    }
    let mut texts = Vec::new();
    if let Some(tree) = parser.parse(content, None) {
        search(tree.root_node(), content, &mut texts);
    }
    texts
}

fn search(node: Node<'_>, content: &str, texts: &mut Vec<Text>) {
    if matches!(node.kind(), "call_expression" | "call") && is_of_flatwater(node, content) {
        texts.extend(first_argument(node, content));
    }
    let mut cursor = node.walk();
    for child in node.named_children(&mut cursor) {
        search(child, content, texts);
    }
}

/// Whether a call is that of a method that takes SQL.
fn is_of_flatwater(call: Node<'_>, content: &str) -> bool {
    let Some(mut function) = call.child_by_field_name("function") else { return false };
    // `await db.query<User>(..)` is a call of `await db.query`, to the grammar.
    while let ("await_expression" | "instantiation_expression", Some(of)) = (function.kind(), function.named_child(0)) {
        function = of;
    }
    let method = function.child_by_field_name("property").or_else(|| function.child_by_field_name("attribute"));
    method.is_some_and(|method| {
        let name = content[method.byte_range()].to_ascii_lowercase().replace('_', "");
        METHODS.contains(&&*name)
    })
}

fn first_argument(call: Node<'_>, content: &str) -> Option<Text> {
    let argument = call.child_by_field_name("arguments")?.named_child(0)?;
    let mut text = Text::new();
    let is_whole = match argument.kind() {
        // A template with the tag `sql`.
        "call_expression" => {
            let tag = argument.child_by_field_name("function")?;
            let template = argument.child_by_field_name("arguments")?;
            &content[tag.byte_range()] == "sql" && template.kind() == "template_string" && {
                literal(template, content, &mut text, true)
            }
        }
        _ => literal(argument, content, &mut text, false),
    };
    (is_whole && !text.sql.is_empty()).then_some(text)
}

/// Adds a literal to a text. Returns false if it is none.
fn literal(node: Node<'_>, content: &str, text: &mut Text, takes_values: bool) -> bool {
    let mut cursor = node.walk();
    if node.kind() == "concatenated_string" {
        return node.named_children(&mut cursor).all(|part| literal(part, content, text, false));
    }
    if !matches!(node.kind(), "string" | "template_string") {
        return false;
    }
    let mut parts = Vec::new();
    let (mut begin, mut end) = (node.start_byte() + 1, node.end_byte() - 1);
    for child in node.children(&mut cursor) {
        match child.kind() {
            // Of Python: the quotes, with the letters before them.
            "string_start" if content[child.byte_range()].to_ascii_lowercase().contains(['f', 'b', 'r']) => {
                return false;
            }
            "string_start" => begin = child.end_byte(),
            "string_end" => end = child.start_byte(),
            _ => inside(child, &mut parts),
        }
    }
    let mut at = begin;
    for part in parts {
        text.push(&content[at..part.start_byte()], at);
        if !special(part, content, text, takes_values) {
            return false;
        }
        at = part.end_byte();
    }
    text.push(&content[at..end.max(at)], at);
    true
}

/// The parts of a literal that are not what is written.
fn inside<'a>(node: Node<'a>, parts: &mut Vec<Node<'a>>) {
    if matches!(node.kind(), "escape_sequence" | "template_substitution" | "interpolation") {
        parts.push(node);
        return;
    }
    let mut cursor = node.walk();
    node.named_children(&mut cursor).for_each(|child| inside(child, parts));
}

fn special(node: Node<'_>, content: &str, text: &mut Text, takes_values: bool) -> bool {
    let written = &content[node.byte_range()];
    if node.kind() == "escape_sequence" {
        return escape(node, content, text);
    }
    text.has_parts = true;
    text.push("?", node.start_byte());
    // `sql.list` and its kin are SQL.
    takes_values && node.kind() == "template_substitution" && !written.starts_with("${sql.")
}

/// The escapes that SQL in a string has; a string with another one is not judged.
fn escape(node: Node<'_>, content: &str, text: &mut Text) -> bool {
    let character = match &content[node.byte_range()] {
        "\\n" => "\n",
        "\\t" => "\t",
        "\\r" => "\r",
        "\\\\" => "\\",
        "\\'" => "'",
        "\\\"" => "\"",
        "\\`" => "`",
        "\\\n" => "",
        _ => return false,
    };
    text.push(character, node.start_byte());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &str, language: Language) -> Vec<String> {
        texts(content, language).into_iter().map(|text| text.sql).collect()
    }

    #[test]
    fn literals_and_templates_of_calls_are_found() {
        let source = "
            const a = await db.query<User>('SELECT 1');
            await tx.queryOne(`SELECT \\`a\\`\n FROM t`, [1]);
            await db.execute(sql`DELETE FROM t WHERE id = ${id}`);
            await db.execute(sql`DELETE FROM t WHERE id IN ${sql.list(ids)}`);
            await db.query(text); other('SELECT 2'); db.query(`a ${b}`); db.other('SELECT 3');
        ";
        let expected = ["SELECT 1", "SELECT `a`\n FROM t", "DELETE FROM t WHERE id = ?"];
        assert_eq!(of(source, Language::TypeScript), expected);
        assert_eq!(of("<a>{db.query(\"SELECT 4\")}</a>", Language::Tsx), ["SELECT 4"]);
    }

    #[test]
    fn strings_of_python_are_found_in_any_form() {
        let source = "
rows = await db.query('SELECT 1')
await db.execute(
    'INSERT INTO t '
    \"VALUES ('a', \\\"b\\\")\",
    (1,),
)
await db.query_one('''SELECT
    2''')
db.query(f'SELECT {a}')
db.query(text)
";
        let expected = ["SELECT 1", "INSERT INTO t VALUES ('a', \"b\")", "SELECT\n    2"];
        assert_eq!(of(source, Language::Python), expected);
        let text = &texts(source, Language::Python)[1];
        assert!(source[text.in_file(text.sql.find("VALUES").unwrap())..].starts_with("VALUES"));
    }
}
