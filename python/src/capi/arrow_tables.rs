//! Tables of Arrow that a program gives.
//!
//! Owns: taking their structs over, and reading values out of their buffers. A record batch is fetched and read on the loop's
//! thread, without its producer's code in between; it may be freed on any. Invariants: a struct is taken once and released
//! once; a value is read of a row and a column that there are, and of a buffer that there is. Leaves out: which formats there
//! are, and what is stored of them (`given::table`).
//!
//! That a buffer is as long as its array says, and that offsets lie within it, is the promise of who made it, as it is between
//! all libraries that use this interface (<https://arrow.apache.org/docs/format/CDataInterface.html>).

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int};
use std::slice::from_raw_parts;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use super::arrow_structs::{ArrowArray, ArrowArrayStream, ArrowSchema, Released};

/// Record batches, and what columns they have.
pub(crate) struct Batches {
    schema: ArrowSchema,
    source: Source,
}

enum Source {
    Stream(ArrowArrayStream),
    /// One that was not fetched yet.
    One(Option<ArrowArray>),
}

/// Rows of a table.
pub(crate) struct Batch(ArrowArray);

// SAFETY: a struct of this interface may be used and released on any thread, by one at a time, and has no data of a thread.
unsafe impl Send for Batches {}
// SAFETY: as above; without `&mut` nothing is fetched.
unsafe impl Sync for Batches {}
// SAFETY: as above.
unsafe impl Send for Batch {}
// SAFETY: as above; what an array points to does not change.
unsafe impl Sync for Batch {}

impl Batches {
    /// Takes the table of an object that has one.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = given.py();
        let (stream, array) = (intern!(py, "__arrow_c_stream__"), intern!(py, "__arrow_c_array__"));
        if given.hasattr(stream)? {
            let mut stream: ArrowArrayStream =
                taken(&given.call_method0(stream)?, c"arrow_array_stream", ArrowArrayStream::EMPTY)?;
            let schema = fetch(&mut stream, |stream| stream.get_schema, ArrowSchema::EMPTY)?;
            Ok(Some(Self { schema, source: Source::Stream(stream) }))
        } else if given.hasattr(array)? {
            let pair = given.call_method0(array)?;
            let pair = pair.cast::<PyTuple>()?;
            let schema = taken(&pair.get_item(0)?, c"arrow_schema", ArrowSchema::EMPTY)?;
            let array = taken(&pair.get_item(1)?, c"arrow_array", ArrowArray::EMPTY)?;
            Ok(Some(Self { schema, source: Source::One(Some(array)) }))
        } else {
            Ok(None)
        }
    }

    /// Returns the fields of the columns; `None` for what has no columns.
    pub(crate) fn fields(&self) -> Option<Vec<Field<'_>>> {
        let whole = Field(&self.schema);
        (whole.format() == "+s").then(|| whole.children())
    }

    /// Fetches the next rows. May run code of the program.
    pub(crate) fn next(&mut self) -> PyResult<Option<Batch>> {
        let array = match &mut self.source {
            Source::One(array) => return Ok(array.take().map(Batch)),
            Source::Stream(stream) => fetch(stream, |stream| stream.get_next, ArrowArray::EMPTY)?,
        };
        Ok(array.release.is_some().then_some(Batch(array)))
    }
}

/// Moves a struct out of the capsule of this name, which is empty then.
fn taken<T: Released>(given: &Bound<'_, PyAny>, name: &'static CStr, empty: T) -> PyResult<T> {
    let at = given.cast::<PyCapsule>()?.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: a capsule of this name has this struct, and was made for this call, so nobody else uses it. An empty struct is not
    // released by the capsule.
    let mut taken = unsafe { at.replace(empty) };
    match taken.release() {
        Some(_) => Ok(taken),
        None => Err(failed("it was used before")),
    }
}

type Callback<T> = Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut T) -> c_int>;

/// Calls a callback of the stream that fills a struct.
fn fetch<T>(
    stream: &mut ArrowArrayStream,
    callback: impl FnOnce(&ArrowArrayStream) -> Callback<T>,
    empty: T,
) -> PyResult<T> {
    let mut filled = empty;
    let Some(call) = callback(stream) else { return Err(failed("it has no callback")) };
    // SAFETY: the stream was not released, and one callback is called at a time. There is a place for the struct, with nothing in it.
    if unsafe { call(stream, &raw mut filled) } == 0 {
        return Ok(filled);
    }
    // SAFETY: as above; the text is there until the next call.
    let said = stream.get_last_error.map(|said| text(unsafe { said(stream) }).into_owned());
    Err(failed(&said.unwrap_or_default()))
}

fn failed(why: &str) -> PyErr {
    pyo3::exceptions::PyValueError::new_err(format!("the stream of Arrow failed: {why}"))
}

/// Returns what a pointer to a text of C points to.
fn text<'a>(at: *const c_char) -> Cow<'a, str> {
    if at.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: it ends with a NUL, and lives as long as the struct that it is of.
    unsafe { CStr::from_ptr(at) }.to_string_lossy()
}

/// Returns the structs that another one points to.
fn structs<'a, T>(at: *mut *mut T, count: i64) -> Vec<&'a T> {
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: there are so many, which live as long as the struct around them, and none is null.
    unsafe { from_raw_parts(at, count).iter().map(|child| &**child).collect() }
}

/// A column, as the schema says it.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a>(&'a ArrowSchema);

impl<'a> Field<'a> {
    pub(crate) fn name(self) -> Cow<'a, str> {
        text(self.0.name)
    }

    /// How the interface writes the type; of a dictionary that of its indexes.
    pub(crate) fn format(self) -> Cow<'a, str> {
        text(self.0.format)
    }

    /// The values that indexes are of.
    pub(crate) fn dictionary(self) -> Option<Self> {
        // SAFETY: it is null, or lives as long as the struct around it.
        unsafe { self.0.dictionary.as_ref() }.map(Self)
    }

    fn children(self) -> Vec<Self> {
        structs(self.0.children, self.0.n_children).into_iter().map(Self).collect()
    }
}

impl Batch {
    pub(crate) fn rows(&self) -> usize {
        usize::try_from(self.0.length).unwrap_or(0)
    }

    /// Returns the column at this position, if there is one.
    pub(crate) fn column(&self, at: usize) -> Option<Column<'_>> {
        let is_there = at < usize::try_from(self.0.n_children).ok()?;
        // SAFETY: there are so many, which live as long as the struct around them, and none is null.
        let array = is_there.then(|| unsafe { &**self.0.children.add(at) })?;
        Some(Column { array, before: usize::try_from(self.0.offset).ok()? })
    }
}

/// A column of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    array: &'a ArrowArray,
    /// So many rows come before the first of the batch.
    before: usize,
}

impl<'a> Column<'a> {
    fn length(self) -> usize {
        usize::try_from(self.array.length).unwrap_or(0)
    }

    /// Where the row stands in the buffers.
    fn at(self, row: usize) -> usize {
        assert!(self.before + row < self.length(), "the column has that row");
        self.before + row + usize::try_from(self.array.offset).unwrap_or(0)
    }

    /// True if it has so many buffers. To be asked before it is read.
    pub(crate) fn has_buffers(self, count: i64) -> bool {
        self.array.n_buffers >= count
    }

    fn buffer(self, number: usize) -> *const u8 {
        assert!(
            usize::try_from(self.array.n_buffers).is_ok_and(|buffers| number < buffers),
            "the column has that buffer"
        );
        // SAFETY: there are so many pointers.
        unsafe { (*self.array.buffers.add(number)).cast() }
    }

    pub(crate) fn is_null(self, row: usize) -> bool {
        self.array.null_count != 0 && !self.buffer(0).is_null() && !self.bit_of(0, row)
    }

    /// A boolean.
    pub(crate) fn bit(self, row: usize) -> bool {
        self.bit_of(1, row)
    }

    fn bit_of(self, buffer: usize, row: usize) -> bool {
        let at = self.at(row);
        // SAFETY: the buffer has a bit for each row.
        unsafe { *self.buffer(buffer).add(at / 8) >> (at % 8) & 1 == 1 }
    }

    /// A value of a fixed number of bytes.
    pub(crate) fn fixed(self, row: usize, width: usize) -> &'a [u8] {
        // SAFETY: the buffer has so many bytes for each row.
        unsafe { from_raw_parts(self.buffer(1).add(self.at(row) * width), width) }
    }

    /// A number of so many bytes, in the order of this machine.
    pub(crate) fn number<const WIDTH: usize>(self, row: usize) -> [u8; WIDTH] {
        let mut bytes = [0; WIDTH];
        bytes.copy_from_slice(self.fixed(row, WIDTH));
        bytes
    }

    /// A text or a blob between two offsets of 64 bits, or of 32.
    pub(crate) fn bytes(self, row: usize, is_large: bool) -> &'a [u8] {
        let (at, offsets) = (self.at(row), self.buffer(1));
        // SAFETY: the buffer has an offset for each row and one more.
        let offset = |at: usize| unsafe {
            match is_large {
                true => offsets.cast::<i64>().add(at).read_unaligned(),
                false => i64::from(offsets.cast::<i32>().add(at).read_unaligned()),
            }
        };
        let (begin, end) = (offset(at), offset(at + 1));
        self.part(2, begin, end - begin)
    }

    /// One of a column of views: it stands in the view, or in a buffer that this names.
    pub(crate) fn view(self, row: usize) -> &'a [u8] {
        const SHORT: usize = 12;
        let view = self.fixed(row, 16);
        let number = |at: usize| i32::from_ne_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
        match usize::try_from(number(0)).unwrap_or(0) {
            length @ ..=SHORT => &view[4..4 + length],
            _ => self.part(2 + usize::try_from(number(8)).unwrap_or(0), number(12).into(), number(0).into()),
        }
    }

    fn part(self, buffer: usize, begin: i64, length: i64) -> &'a [u8] {
        match (usize::try_from(begin), usize::try_from(length)) {
            // SAFETY: the offsets are of this buffer.
            (Ok(begin), Ok(length)) if length > 0 => unsafe { from_raw_parts(self.buffer(buffer).add(begin), length) },
            _ => &[],
        }
    }

    /// The values that the indexes are of, and how many there are.
    pub(crate) fn dictionary(self) -> Option<(Self, usize)> {
        // SAFETY: it is null, or lives as long as the struct around it.
        let array = unsafe { self.array.dictionary.as_ref() }?;
        let values = Self { array, before: 0 };
        Some((values, values.length()))
    }
}
