//! Memory that may not be there: bytes are copied and room is made for them, or it is a MemoryError.
//!
//! pyo3's own constructors panic then, and vectors abort the process.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Copies the bytes. Raises MemoryError.
pub(crate) fn copied<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
}

/// Makes room for `more` bytes. Raises MemoryError, which says for `what`.
pub(crate) fn room_for(bytes: &mut Vec<u8>, more: usize, what: &str) -> PyResult<()> {
    let reserved = bytes.try_reserve(more);
    reserved.map_err(|_| {
        PyMemoryError::new_err(format!("there is no memory for {what} of {} bytes", bytes.len() + more))
    })
}
