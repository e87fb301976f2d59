//! What a program says of its databases: in `flatwater.toml` beside its `Cargo.toml`, or in `[package.metadata.flatwater]` of that.
//!
//! Owns: reading both. Invariants: a key that is not known is an error, and so is a folder that is named and not there; a program that
//! says nothing has one database with the migrations of its folder `migrations`. Leaves out: what the declarations do (`schema`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::fault::Fault;
use crate::kind::Kind;

/// The databases of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
    /// The database of a text that names none.
    pub main: Database,
    /// The others, by name.
    pub others: BTreeMap<String, Database>,
}

/// What is declared of a database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Database {
    /// The folder of its migrations.
    pub migrations: PathBuf,
    /// Functions of the program.
    pub functions: Vec<Function>,
    /// The names of its collations.
    pub collations: Vec<String>,
    /// The paths of loadable extensions.
    pub extensions: Vec<PathBuf>,
    /// The databases that are attached.
    pub attached: Vec<Attached>,
    /// Types in Rust, by declared type or by `table.column`.
    pub types: BTreeMap<String, String>,
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The number of its arguments, or -1 for any.
    pub arguments: i32,
    /// What it returns.
    pub returns: Kind,
    /// Whether it returns NULL sometimes.
    pub nullable: bool,
    /// Whether it is an aggregate.
    pub aggregate: bool,
}

/// A database that is attached, and the folder of its migrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The name of the schema.
    pub name: String,
    /// The folder of its migrations.
    pub migrations: PathBuf,
}

impl Project {
    /// Reads what the program in this folder says. Blocks on the file system.
    ///
    /// # Errors
    /// A file that cannot be read, a key that is not known, a value of the wrong type.
    pub fn of(folder: &Path) -> Result<Self, Fault> {
        let own = folder.join("flatwater.toml");
        if own.is_file() {
            return Self::parse(folder, &own, table(&own)?);
        }
        let cargo = folder.join("Cargo.toml");
        let metadata = if cargo.is_file() { metadata(table(&cargo)?) } else { None };
        match metadata {
            Some(metadata) => Self::parse(folder, &cargo, metadata),
            None => Ok(Self { file: None, main: Database::of(folder, Table::new())?, others: BTreeMap::new() }),
        }
    }

    fn parse(folder: &Path, file: &Path, mut table: Table) -> Result<Self, Fault> {
        let named = |fault: Fault| Fault { message: format!("{}: {}", file.display(), fault.message), ..fault };
        let others = tables(&mut table, "databases").and_then(|others| {
            others.into_iter().map(|(name, table)| Ok((name, Database::of(folder, table)?))).collect()
        });
        let main = Database::of(folder, table).map_err(named)?;
        Ok(Self { file: Some(file.to_owned()), main, others: others.map_err(named)? })
    }

    /// The database with this name, or the one without.
    ///
    /// # Errors
    /// If there is none with this name.
    pub fn database(&self, name: Option<&str>) -> Result<&Database, Fault> {
        let Some(name) = name else { return Ok(&self.main) };
        self.others.get(name).ok_or_else(|| {
            Fault::new(format!("no database {name} is declared"))
                .with_hint(format!("declare it in flatwater.toml: [databases.{name}] migrations = \"folder\""))
        })
    }
}

fn table(path: &Path) -> Result<Table, Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| Fault::new(format!("{}: {error}", path.display())))?;
    text.parse().map_err(|error: toml::de::Error| Fault::new(format!("{}: {}", path.display(), error.message())))
}

fn metadata(mut cargo: Table) -> Option<Table> {
    let Some(Value::Table(package)) = cargo.get_mut("package") else { return None };
    let Some(Value::Table(metadata)) = package.get_mut("metadata") else { return None };
    let Some(Value::Table(flatwater)) = metadata.remove("flatwater") else { return None };
    Some(flatwater)
}

fn wrong(key: &str, wanted: &str) -> Fault {
    Fault::new(format!("{key} is not {wanted}"))
}

/// Takes a table of tables.
fn tables(of: &mut Table, key: &str) -> Result<Vec<(String, Table)>, Fault> {
    let Some(value) = of.remove(key) else { return Ok(Vec::new()) };
    let Value::Table(all) = value else { return Err(wrong(key, "a table")) };
    let each = |(name, value)| match value {
        Value::Table(table) => Ok((name, table)),
        _ => Err(wrong(&format!("{key}.{name}"), "a table")),
    };
    all.into_iter().map(each).collect()
}

/// Takes a list of texts.
fn texts(of: &mut Table, key: &str) -> Result<Vec<String>, Fault> {
    let Some(value) = of.remove(key) else { return Ok(Vec::new()) };
    let Value::Array(all) = value else { return Err(wrong(key, "a list of texts")) };
    let text = |value| if let Value::String(text) = value { Ok(text) } else { Err(wrong(key, "a list of texts")) };
    all.into_iter().map(text).collect()
}

fn text(of: &mut Table, key: &str) -> Result<Option<String>, Fault> {
    match of.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(key, "a text")),
    }
}

fn flag(of: &mut Table, key: &str, default: bool) -> Result<bool, Fault> {
    match of.remove(key) {
        None => Ok(default),
        Some(Value::Boolean(value)) => Ok(value),
        Some(_) => Err(wrong(key, "true or false")),
    }
}

fn nothing_else(of: &Table, place: &str) -> Result<(), Fault> {
    match of.keys().next() {
        None => Ok(()),
        Some(key) => Err(Fault::new(format!("{place}{key} is not a key of flatwater"))),
    }
}

impl Database {
    fn of(folder: &Path, mut table: Table) -> Result<Self, Fault> {
        let types = match table.remove("types") {
            None => Table::new(),
            Some(Value::Table(types)) => types,
            Some(_) => return Err(wrong("types", "a table")),
        };
        let of_type = |(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            _ => Err(wrong(&format!("types.{name}"), "a text")),
        };
        let functions = tables(&mut table, "functions")?;
        let attached = tables(&mut table, "attached")?;
        let database = Self {
            migrations: folder.join(text(&mut table, "migrations")?.unwrap_or_else(|| "migrations".to_owned())),
            functions: functions
                .into_iter()
                .map(|(name, table)| Function::of(name, table))
                .collect::<Result<_, _>>()?,
            collations: texts(&mut table, "collations")?,
            extensions: texts(&mut table, "extensions")?.into_iter().map(|path| folder.join(path)).collect(),
            attached: attached
                .into_iter()
                .map(|(name, table)| Attached::of(folder, name, table))
                .collect::<Result<_, _>>()?,
            types: types.into_iter().map(of_type).collect::<Result<_, _>>()?,
        };
        nothing_else(&table, "")?;
        Ok(database)
    }

    /// The folders whose files make the schema.
    pub fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&*self.migrations).chain(self.attached.iter().map(|attached| &*attached.migrations))
    }
}

impl Function {
    fn of(name: String, mut table: Table) -> Result<Self, Fault> {
        let place = format!("functions.{name}.");
        let arguments = match table.remove("arguments") {
            None => -1,
            Some(Value::Integer(count @ 0..=127)) => i32::try_from(count).unwrap_or(-1),
            Some(_) => return Err(wrong(&format!("{place}arguments"), "a number from 0 to 127")),
        };
        let returns = text(&mut table, "returns")?.map_or(Some(Kind::Any), |name| Kind::named(&name));
        let wanted = "INTEGER, REAL, NUMBER, TEXT, BLOB or ANY";
        let function = Self {
            arguments,
            returns: returns.ok_or_else(|| wrong(&format!("{place}returns"), wanted))?,
            nullable: flag(&mut table, "nullable", true)?,
            aggregate: flag(&mut table, "aggregate", false)?,
            name,
        };
        nothing_else(&table, &place)?;
        Ok(function)
    }
}

impl Attached {
    fn of(folder: &Path, name: String, mut table: Table) -> Result<Self, Fault> {
        let place = format!("attached.{name}.");
        let migrations =
            text(&mut table, "migrations")?.ok_or_else(|| wrong(&format!("{place}migrations"), "given"))?;
        nothing_else(&table, &place)?;
        Ok(Self { name, migrations: folder.join(migrations) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Project, Fault> {
        Project::parse(Path::new("/app"), Path::new("/app/flatwater.toml"), text.parse().unwrap())
    }

    #[test]
    fn every_declaration_is_read() {
        let project = of(r#"
            migrations = "schema"
            collations = ["german"]
            extensions = ["vec0"]
            [functions.slug]
            arguments = 1
            returns = "TEXT"
            nullable = false
            [attached.archive]
            migrations = "archive"
            [types]
            DATETIME = "chrono::NaiveDateTime"
            [databases.audit]
            migrations = "audit"
        "#);
        let project = project.unwrap();
        assert_eq!(project.main.migrations, Path::new("/app/schema"));
        assert_eq!(project.main.folders().count(), 2);
        let slug =
            Function { name: "slug".into(), arguments: 1, returns: Kind::Text, nullable: false, aggregate: false };
        assert_eq!(project.main.functions, [slug]);
        assert_eq!(project.database(Some("audit")).unwrap().migrations, Path::new("/app/audit"));
        assert!(project.database(Some("other")).unwrap_err().hint.unwrap().contains("[databases.other]"));
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_name() {
        for (text, says) in [
            ("migration = \"a\"", "/app/flatwater.toml: migration is not a key"),
            ("[functions.slug]\nreturns = \"STRING\"", "functions.slug.returns is not INTEGER"),
            ("[functions.slug]\nargs = 1", "functions.slug.args is not a key"),
            ("[attached.archive]", "attached.archive.migrations is not given"),
            ("[databases]\naudit = 1", "databases.audit is not a table"),
            ("collations = [1]", "collations is not a list of texts"),
        ] {
            let message = of(text).unwrap_err().message;
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn a_folder_that_says_nothing_has_its_migrations_and_cargo_may_say_it() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Project::of(folder.path()).unwrap().main.migrations, folder.path().join("migrations"));
        let cargo = "[package]\nname = \"a\"\n[package.metadata.flatwater]\nmigrations = \"db\"";
        std::fs::write(folder.path().join("Cargo.toml"), cargo).unwrap();
        assert_eq!(Project::of(folder.path()).unwrap().main.migrations, folder.path().join("db"));
        std::fs::write(folder.path().join("flatwater.toml"), "migrations = \"own\"").unwrap();
        assert_eq!(Project::of(folder.path()).unwrap().main.migrations, folder.path().join("own"));
    }
}
