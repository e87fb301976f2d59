//! Rows of a CSV file.
//!
//! Owns: what an empty field is, and columns without names. Leaves out: reading CSV.

use std::io::Read;

use ::csv::{Error, ErrorKind, Reader, ReaderBuilder, StringRecord};

use super::chunk::{Cell, Chunk, Source};
use super::{Input, ReadError};
use crate::failure::Outcome;

pub(super) struct Csv<R> {
    reader: Reader<R>,
    record: StringRecord,
    columns: Vec<String>,
    empty_is_null: bool,
}

impl<R: Read> Csv<R> {
    pub(super) fn new(from: R, input: &Input) -> Outcome<Self> {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(input.headers).delimiter(input.separator).buffer_capacity(256 << 10);
        let mut reader = builder.from_reader(from);
        let columns = match input.headers {
            true => {
                let names = reader.headers().map_err(|error| read_error(&error).in_file(&input.name))?;
                names.iter().map(str::to_owned).collect()
            }
            false => Vec::new(),
        };
        Ok(Self { reader, record: StringRecord::new(), columns, empty_is_null: input.empty_is_null })
    }
}

fn read_error(error: &Error) -> ReadError {
    let line = error.position().map(::csv::Position::line);
    let message = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the line has {len} fields, and the first one {expected_len}")
        }
        ErrorKind::Utf8 { .. } => "the line is not UTF-8".to_owned(),
        ErrorKind::Io(error) => error.to_string(),
        _ => error.to_string(),
    };
    ReadError { line, message }
}

impl<R: Read> Source for Csv<R> {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn fill(&mut self, chunk: &mut Chunk) -> Result<(), ReadError> {
        while !chunk.is_full() {
            if !self.reader.read_record(&mut self.record).map_err(|error| read_error(&error))? {
                break;
            }
            chunk.begin_row(self.record.position().map_or(0, ::csv::Position::line));
            let begin = chunk.add_text(self.record.as_slice());
            for at in 0..self.record.len() {
                let range = self.record.range(at).expect("the record has so many fields");
                let is_null = range.is_empty() && self.empty_is_null;
                chunk.add(if is_null { Cell::Null } else { Cell::Text(begin + range.start, begin + range.end) });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flatwater::ValueRef;

    use super::super::Form;
    use super::*;

    fn input(headers: bool, empty_is_null: bool) -> Input {
        Input { name: "a.csv".to_owned(), form: Form::Csv, separator: b',', headers, empty_is_null }
    }

    #[test]
    fn fields_become_texts() {
        let mut csv = Csv::new(&b"a,b\n1,\"x,\"\"y\"\n,z\n"[..], &input(true, true)).unwrap();
        assert_eq!(csv.columns(), ["a", "b"]);
        let mut chunk = Chunk::default();
        csv.fill(&mut chunk).unwrap();
        let rows: Vec<Vec<ValueRef<'_>>> = (0..chunk.rows()).map(|row| chunk.row(row).collect()).collect();
        assert_eq!(rows[0], [ValueRef::Text(b"1"), ValueRef::Text(b"x,\"y")]);
        assert_eq!(rows[1], [ValueRef::Null, ValueRef::Text(b"z")]);
        assert_eq!((chunk.line(0), chunk.line(1)), (2, 3));
        let mut rest = Chunk::default();
        csv.fill(&mut rest).unwrap();
        assert!(rest.is_empty());
    }

    #[test]
    fn an_error_names_its_line() {
        let mut csv = Csv::new(&b"1,2\n3\n"[..], &input(false, false)).unwrap();
        let error = csv.fill(&mut Chunk::default()).unwrap_err();
        assert_eq!((error.line, &*error.message), (Some(2), "the line has 1 fields, and the first one 2"));
        let mut csv = Csv::new(&b"1\n\xff\n"[..], &input(false, false)).unwrap();
        assert_eq!(csv.fill(&mut Chunk::default()).unwrap_err().message, "the line is not UTF-8");
    }
}
