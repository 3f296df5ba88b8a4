//! Commands and their replies over a socket that nobody else uses meanwhile.
//!
//! It does no I/O. A thread that waits for the socket is Python's own, down to its last frame: when the interpreter ends,
//! it unwinds such threads, and frames of Rust may not be unwound.

use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use smallvec::SmallVec;

use crate::allowance::Allowance;
use crate::leaving::inside;
use crate::replies::{Expected, Inbox, unasked};
use crate::wire::Wire;

/// One or several commands, ready to be sent, any number of times.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Request {
    wire: Py<Wire>,
    bytes: Py<PyBytes>,
    expected: SmallVec<[Expected; 1]>,
}

impl Request {
    pub fn new(wire: Py<Wire>, bytes: Py<PyBytes>, expected: SmallVec<[Expected; 1]>) -> Request {
        Request { wire, bytes, expected }
    }

    pub fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        self.bytes.as_bytes(py)
    }

    /// Returns the expected replies, each time it is sent.
    pub fn expected(&self) -> &[Expected] {
        &self.expected
    }
}

#[pymethods]
impl Request {
    /// The commands as they are sent.
    #[getter]
    fn packed(&self, py: Python<'_>) -> Py<PyBytes> {
        self.bytes.clone_ref(py)
    }

    /// A receiver of the replies, for each time the commands are sent.
    fn receiver(slf: &Bound<'_, Request>) -> Receiver {
        Receiver {
            request: slf.clone().unbind(),
            replies: PyList::empty(slf.py()).unbind(),
            inbox: Inbox::default(),
            allowance: slf.get().wire.get().replies().allowance(),
        }
    }
}

/// The replies to a request, as they come.
#[pyclass(module = "snugly._native")]
pub(crate) struct Receiver {
    request: Py<Request>,
    replies: Py<PyList>,
    inbox: Inbox,
    allowance: Allowance,
}

#[pymethods]
impl Receiver {
    /// Takes what was read, and returns the replies once they are there; those that are errors are exceptions.
    ///
    /// Raises EOFError for nothing, which is the end, and ProtocolFault; the socket is of no use then.
    fn take(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<Option<Py<PyList>>> {
        let _inside = inside(py);
        if data.is_empty() {
            return Err(PyEOFError::new_err("the server has closed the connection"));
        }
        let (request, replies) = (self.request.get(), self.replies.bind(py));
        let allowance = &mut self.allowance;
        self.inbox.receive(data, |reply| {
            if reply.first() == Some(&b'>') {
                return Ok(());
            }
            let expected = request.expected.get(replies.len()).ok_or_else(unasked)?;
            replies.append(request.wire.get().replies().read(py, reply, expected, allowance)?)
        })?;
        let is_whole = replies.len() == request.expected.len() && self.inbox.is_empty();
        Ok(is_whole.then(|| self.replies.clone_ref(py)))
    }
}
