//! Counters by name, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The counters of all codecs of this process, by name.
#[pyfunction]
pub(crate) fn process_statistics(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    named(py, snugly_client::process_statistics())
}

/// Name, family, codec and text of each counter.
type Description = (String, &'static str, Option<&'static str>, &'static str);

/// Returns the descriptions of all counters: for each name of the statistics its family, the codec if the
/// family has one counter a codec, and its meaning.
#[pyfunction]
pub(crate) fn counters() -> Vec<Description> {
    snugly_client::descriptions().map(|row| (row.name, row.family, row.codec, row.help)).collect()
}

/// A dict of counters.
pub(crate) fn named(
    py: Python<'_>,
    counters: impl Iterator<Item = (String, u64)>,
) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    for (name, count) in counters {
        names.set_item(name, count)?;
    }
    Ok(names)
}
