//! Results as streams of Arrow.
//!
//! Owns: what is in the structs, and the memory that they point to. Makes a stream on a thread with the interpreter's
//! lock; whoever took the stream reads and releases it on any thread, without the lock. Invariant: what is pointed
//! into is kept, and does not change; no object of Python is referred to. Leaves out: the structs (`arrow_structs`),
//! the values (`chunk`).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::arrow_structs::{ArrowArray, ArrowArrayStream, ArrowSchema, Children, Release, Released, release};
use crate::results::chunk::{Chunk, Values};
use crate::results::table::Table;

const NULLABLE: i64 = 2;
/// What a callback returns that has failed: `EIO` of C.
const FAILED: c_int = 5;

/// Where a stream is in its table.
pub(super) struct Reader {
    table: Arc<Table>,
    names: Vec<CString>,
    /// The chunk that comes next.
    next: usize,
}

/// What a schema points to.
pub(super) struct SchemaMemory {
    /// It is pointed to only.
    _name: CString,
    children: Children<ArrowSchema>,
}

/// What an array points to.
pub(super) struct ArrayMemory {
    /// It is pointed into only.
    _table: Arc<Table>,
    buffers: Vec<*const c_void>,
    children: Children<ArrowArray>,
}

impl Released for ArrowSchema {
    type Memory = SchemaMemory;

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }

    fn memory(&self) -> *mut c_void {
        self.private_data
    }
}

impl Released for ArrowArray {
    type Memory = ArrayMemory;

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }

    fn memory(&self) -> *mut c_void {
        self.private_data
    }
}

impl Released for ArrowArrayStream {
    type Memory = Reader;

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }

    fn memory(&self) -> *mut c_void {
        self.private_data
    }
}

// SAFETY: what it points to is a `Reader`, which has no reference to a thread's own data.
unsafe impl Send for ArrowArrayStream {}

/// Returns a new stream of the table, with a record batch for each of its chunks.
pub(crate) fn stream<'py>(py: Python<'py>, table: &Arc<Table>) -> PyResult<Bound<'py, PyCapsule>> {
    let names = table.names.iter().map(|name| CString::new(&**name)).collect::<Result<_, _>>();
    let names = names.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let reader = Box::new(Reader { table: table.clone(), names, next: 0 });
    let stream = ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(reader).cast(),
    };
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

impl Reader {
    fn schema(&self) -> ArrowSchema {
        let fields = self.table.columns.iter().zip(&self.names);
        let children = fields.map(|(column, name)| {
            let none = Children(Vec::new());
            schema(format(column.values()), NULLABLE, SchemaMemory { _name: name.clone(), children: none })
        });
        schema(c"+s", 0, SchemaMemory { _name: CString::default(), children: children.collect() })
    }

    /// The next record batch; after the last one, an empty struct.
    fn next(&mut self) -> ArrowArray {
        let at = self.next;
        let Some(rows) = self.table.columns.first().and_then(|column| column.chunks.get(at)).map(|chunk| chunk.rows)
        else {
            return ArrowArray::EMPTY;
        };
        self.next += 1;
        let children = self.table.columns.iter().map(|column| self.column(&column.chunks[at])).collect();
        array(rows, 0, ArrayMemory { _table: self.table.clone(), buffers: vec![null()], children })
    }

    fn column(&self, chunk: &Chunk) -> ArrowArray {
        let valid = if chunk.valid.is_empty() { null() } else { chunk.valid.as_ptr().cast() };
        let buffers = match &chunk.values {
            Values::Nulls => Vec::new(),
            Values::Integers(values) => vec![valid, values.as_ptr().cast()],
            Values::Reals(values) => vec![valid, values.as_ptr().cast()],
            Values::Texts(bytes) | Values::Blobs(bytes) => {
                vec![valid, bytes.ends.as_ptr().cast(), bytes.bytes.as_ptr().cast()]
            }
        };
        array(
            chunk.rows,
            chunk.nulls,
            ArrayMemory { _table: self.table.clone(), buffers, children: Children(Vec::new()) },
        )
    }
}

/// How Arrow calls the type.
fn format(values: &Values) -> &'static CStr {
    match values {
        Values::Nulls => c"n",
        Values::Integers(_) => c"l",
        Values::Reals(_) => c"g",
        Values::Texts(_) => c"u",
        Values::Blobs(_) => c"z",
    }
}

fn schema(format: &'static CStr, flags: i64, memory: SchemaMemory) -> ArrowSchema {
    let mut memory = Box::new(memory);
    ArrowSchema {
        format: format.as_ptr(),
        name: memory._name.as_ptr(),
        metadata: null(),
        flags,
        n_children: count(memory.children.0.len()),
        children: memory.children.0.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release),
        private_data: Box::into_raw(memory).cast(),
    }
}

fn array(rows: usize, nulls: usize, memory: ArrayMemory) -> ArrowArray {
    let mut memory = Box::new(memory);
    ArrowArray {
        length: count(rows),
        null_count: count(nulls),
        n_buffers: count(memory.buffers.len()),
        n_children: count(memory.children.0.len()),
        buffers: memory.buffers.as_mut_ptr(),
        children: memory.children.0.as_mut_ptr(),
        release: Some(release),
        private_data: Box::into_raw(memory).cast(),
        ..ArrowArray::EMPTY
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: a callback of a stream that was not released, and one is called at a time. The caller gives a place for the
    // struct, with nothing in it.
    unsafe { answer(out, || (*(*stream).private_data.cast::<Reader>()).schema()) }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as above.
    unsafe { answer(out, || (*(*stream).private_data.cast::<Reader>()).next()) }
}

/// # Safety
/// There is a place at `out`, with nothing in it.
unsafe fn answer<T>(out: *mut T, make: impl FnOnce() -> T) -> c_int {
    let Ok(made) = catch_unwind(AssertUnwindSafe(make)) else { return FAILED };
    // SAFETY: see above.
    unsafe { out.write(made) };
    0
}

/// There is nothing to add.
unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    null()
}
