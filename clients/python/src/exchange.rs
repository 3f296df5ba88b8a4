//! Commands and their replies over a socket that nobody else uses meanwhile.
//!
//! The socket is Python's, so TLS, timeouts and signals are as everywhere, and other threads run while this one waits.

use pyo3::exceptions::PyEOFError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::replies::{Expected, Inbox, unasked};
use crate::wire::Wire;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// One or several commands, ready to be sent, any number of times.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Request {
    wire: Py<Wire>,
    bytes: Py<PyBytes>,
    expected: Vec<Expected>,
}

impl Request {
    pub fn new(wire: Py<Wire>, bytes: Py<PyBytes>, expected: Vec<Expected>) -> Request {
        Request { wire, bytes, expected }
    }

    pub fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        self.bytes.as_bytes(py)
    }

    /// What the replies will be, each time it is sent.
    pub fn expected(&self) -> &[Expected] {
        &self.expected
    }
}

#[pymethods]
impl Request {
    /// Sends the commands. Raises what the socket raises; it is of no use then.
    fn send(&self, socket: &Bound<'_, PyAny>) -> PyResult<()> {
        socket.call_method1(intern!(socket.py(), "sendall"), (&self.bytes,))?;
        Ok(())
    }

    /// Returns the replies; those that are errors are exceptions.
    ///
    /// Raises what the socket raises, EOFError if it ends, and ProtocolFault; the socket is of no use then.
    fn receive<'py>(&self, socket: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = socket.py();
        let replies = PyList::empty(py);
        let mut inbox = Inbox::default();
        while replies.len() < self.expected.len() || !inbox.is_empty() {
            let data = socket.call_method1(intern!(py, "recv"), (READ_BYTES,))?.cast_into::<PyBytes>()?;
            if data.as_bytes().is_empty() {
                return Err(PyEOFError::new_err("the server has closed the connection"));
            }
            inbox.receive(data.as_bytes(), |reply| {
                if reply.first() == Some(&b'>') {
                    return Ok(());
                }
                let expected = self.expected.get(replies.len()).ok_or_else(unasked)?;
                replies.append(self.wire.get().replies().read(py, reply, expected)?)
            })?;
        }
        Ok(replies)
    }
}
