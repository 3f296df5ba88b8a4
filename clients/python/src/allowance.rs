//! Limit on the size of one reply's restored values, so that a few bytes from a stranger cannot exhaust
//! memory.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Rest of a reply's limit, for the Python half, which may restore some of its values later.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Budget(AtomicU64);

impl Budget {
    /// `bytes` in all; 0 for no bound.
    pub fn new(bytes: u64) -> Budget {
        Budget(AtomicU64::new(if bytes == 0 { u64::MAX } else { bytes }))
    }
}

/// Rest of a reply's limit, for its reader. A [`Budget`] exists only once Python needs it.
pub(crate) struct Allowance {
    left: u64,
    shared: Option<Py<Budget>>,
}

impl Allowance {
    /// `bytes` in all; 0 for no bound.
    pub fn new(bytes: u64) -> Allowance {
        Allowance { left: if bytes == 0 { u64::MAX } else { bytes }, shared: None }
    }

    pub fn unbounded() -> Allowance {
        Allowance::new(0)
    }

    /// Creates an allowance from the rest of a budget.
    pub fn of(budget: Bound<'_, Budget>) -> Allowance {
        Allowance { left: 0, shared: Some(budget.unbind()) }
    }

    /// Returns the greatest length of the next value, in bytes.
    pub fn left(&self) -> usize {
        let left = match &self.shared {
            Some(budget) => budget.get().0.load(Ordering::Relaxed),
            None => self.left,
        };
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Takes the bytes of a value.
    pub fn take(&mut self, bytes: usize) {
        // Without a bound there is as much as before.
        let less = |left: u64| if left == u64::MAX { left } else { left.saturating_sub(bytes as u64) };
        match &self.shared {
            Some(budget) => {
                let _ = budget
                    .get()
                    .0
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(less(left)));
            }
            None => self.left = less(self.left),
        }
    }

    /// Returns the rest as a budget that is shared with Python from now on.
    pub fn shared<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, Budget>> {
        let budget = match &self.shared {
            Some(budget) => budget.clone_ref(py),
            None => Py::new(py, Budget(AtomicU64::new(self.left)))?,
        };
        self.shared = Some(budget.clone_ref(py));
        Ok(budget.into_bound(py))
    }
}
