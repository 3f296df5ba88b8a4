//! The manager of a client's dictionaries, step by step, for Python.
//!
//! It knows Python's objects; the rules are those of the crate `snugly-dictionaries`. Who takes the steps is for the Python
//! code around it, which knows connections, threads, event loops and files.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple};
use snugly_dictionaries::{self as rules, Answer, Event, Failure, Next, Now, Reply, Request, Step};

use crate::dictionaries::{Dictionaries, Dictionary, seconds};

/// Manager of the dictionaries of one client. Times are `monotonic` ones, and `wall` is since 1970; all in seconds.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Manager(Arc<rules::Manager>);

#[pymethods]
impl Manager {
    /// `waits` says whether unknown dictionaries are waited for, `has_copies` whether copies are kept in a folder, and
    /// `read_timeout` how long the client waits for a reply, in seconds; None for any time.
    #[new]
    #[pyo3(signature = (*, prefix, refresh, waits, has_copies, read_timeout, dictionaries))]
    fn new(
        prefix: String,
        refresh: f64,
        waits: bool,
        has_copies: bool,
        read_timeout: Option<f64>,
        dictionaries: &Dictionaries,
    ) -> Manager {
        let read_timeout = read_timeout.map(seconds);
        let settings = rules::Settings { prefix, refresh: seconds(refresh), waits, has_copies, read_timeout };
        Manager(Arc::new(rules::Manager::new(settings, dictionaries.cache().clone())))
    }

    /// Returns the time between rounds, in seconds.
    #[getter]
    fn interval(&self) -> f64 {
        self.0.interval().as_secs_f64()
    }

    /// Looks for dictionaries for a while. The outcome is a dict of those that there are, by ID.
    fn fetch(&self, ids: Vec<u32>) -> Task {
        Task::new(Steps::Fetch(self.0.fetch(ids)))
    }

    /// Does what is to be done now. The outcome is how long there is nothing to do.
    fn refresh(&self) -> Task {
        Task::new(Steps::Refresh(self.0.refresh()))
    }

    /// Makes the server register dictionaries as in use, and puts back missing ones. The outcome is None.
    fn keep(&self) -> Task {
        Task::new(Steps::Keep(self.0.keep()))
    }

    /// Makes the next refresh check everything.
    fn hurry(&self) {
        self.0.hurry();
    }

    /// Forgets the tasks that are under way: they are another process's.
    fn forget_tasks(&self) {
        self.0.forget_tasks();
    }

    /// Returns whether looking up this dictionary now is useless.
    fn is_missing(&self, id: u32, monotonic: f64) -> bool {
        self.0.is_missing(id, seconds(monotonic))
    }

    /// Returns whether dictionaries are not available now, for want of permission.
    fn is_off(&self, monotonic: f64) -> bool {
        self.0.is_off(seconds(monotonic))
    }

    /// Returns whether permission was missing at the last request.
    fn was_off(&self) -> bool {
        self.0.was_off()
    }

    /// Returns whether there was a catalogue at the last read, or one was published since.
    fn is_known(&self) -> bool {
        self.0.is_known()
    }

    /// Notes that the catalogue is gone.
    fn lose(&self) {
        self.0.lose();
    }

    /// Notes that this client has published a dictionary itself.
    fn has_published(&self, dictionary: &Dictionary, monotonic: f64, wall: f64) {
        self.0.has_published(dictionary.0.clone(), now(monotonic, wall));
    }

    /// Returns whether a warning is new. Each is logged once.
    fn is_new_warning(&self, warning: &str) -> bool {
        self.0.is_new_warning(warning)
    }
}

/// Stands for the reply to a command that failed.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Failed {
    is_denied: bool,
    reason: String,
}

#[pymethods]
impl Failed {
    #[new]
    fn new(is_denied: bool, reason: String) -> Failed {
        Failed { is_denied, reason }
    }
}

enum Steps {
    Fetch(rules::Task<rules::Found>),
    Refresh(rules::Task<std::time::Duration>),
    Keep(rules::Task<()>),
}

/// Something that takes several steps. Each of its methods takes the answer to the last one and returns the next: a tuple
/// of events, what is to be done, and with what. Events are pairs of a name and a text.
#[pyclass(frozen, module = "snugly._native")]
pub(crate) struct Task(Mutex<Steps>);

type Shown<'py> = (Vec<(&'static str, String)>, &'static str, Bound<'py, PyAny>);

#[pymethods]
impl Task {
    /// Begins.
    fn start<'py>(&self, py: Python<'py>, monotonic: f64, wall: f64) -> PyResult<Shown<'py>> {
        self.step(py, None, now(monotonic, wall))
    }

    /// After "send", lists of commands: the replies, or `Failed` in the place of one.
    fn replies<'py>(
        &self,
        py: Python<'py>,
        replies: Vec<Bound<'py, PyAny>>,
        monotonic: f64,
        wall: f64,
    ) -> PyResult<Shown<'py>> {
        let replies = replies.iter().map(reply).collect();
        self.step(py, Some(Answer::Replies(replies)), now(monotonic, wall))
    }

    /// After "send": the server could not be asked.
    fn lost<'py>(&self, py: Python<'py>, reason: String, monotonic: f64, wall: f64) -> PyResult<Shown<'py>> {
        self.step(py, Some(Answer::Lost(reason)), now(monotonic, wall))
    }

    /// After "read_copies", IDs: those that there are, each with its place and its bytes.
    fn copies<'py>(
        &self,
        py: Python<'py>,
        copies: Vec<(u32, String, Vec<u8>)>,
        monotonic: f64,
        wall: f64,
    ) -> PyResult<Shown<'py>> {
        self.step(py, Some(Answer::Copies(copies)), now(monotonic, wall))
    }

    /// After "sleep", seconds; "write_copies", dictionaries; and "remove_copies", IDs.
    fn done<'py>(&self, py: Python<'py>, monotonic: f64, wall: f64) -> PyResult<Shown<'py>> {
        self.step(py, Some(Answer::Done), now(monotonic, wall))
    }
}

impl Task {
    fn new(steps: Steps) -> Task {
        Task(Mutex::new(steps))
    }

    fn step<'py>(&self, py: Python<'py>, answer: Option<Answer>, now: Now) -> PyResult<Shown<'py>> {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Steps::Fetch(task) => shown(py, step(task, answer, now), |found| {
                let by_id = PyDict::new(py);
                for (id, dictionary) in found {
                    by_id.set_item(id, Dictionary(dictionary))?;
                }
                Ok(by_id.into_any())
            }),
            Steps::Refresh(task) => {
                shown(py, step(task, answer, now), |pause| pause.as_secs_f64().into_bound_py_any(py))
            }
            Steps::Keep(task) => shown(py, step(task, answer, now), |()| Ok(py.None().into_bound(py))),
        }
    }
}

fn now(monotonic: f64, wall: f64) -> Now {
    Now { monotonic: seconds(monotonic), wall: seconds(wall) }
}

fn step<T>(task: &mut rules::Task<T>, answer: Option<Answer>, now: Now) -> Step<T> {
    match answer {
        Some(answer) => task.resume(answer, now),
        None => task.start(now),
    }
}

fn shown<'py, T>(
    py: Python<'py>,
    step: Step<T>,
    outcome: impl FnOnce(T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Shown<'py>> {
    let events = step.events.into_iter().map(event).collect();
    let (kind, what) = match step.next {
        Next::Done(done) => ("end", outcome(done)?),
        Next::Ask(request) => asked(py, request)?,
    };
    Ok((events, kind, what))
}

fn asked(py: Python<'_>, request: Request) -> PyResult<(&'static str, Bound<'_, PyAny>)> {
    Ok(match request {
        Request::Send(commands) => {
            let command = |command: Vec<Vec<u8>>| {
                PyTuple::new(py, command.iter().map(|argument| PyBytes::new(py, argument)))
            };
            let commands: Vec<_> = commands.into_iter().map(command).collect::<PyResult<_>>()?;
            ("send", commands.into_bound_py_any(py)?)
        }
        Request::Sleep(pause) => ("sleep", pause.as_secs_f64().into_bound_py_any(py)?),
        Request::ReadCopies(ids) => ("read_copies", ids.into_bound_py_any(py)?),
        Request::WriteCopies(all) => {
            let all: Vec<_> = all.into_iter().map(Dictionary).collect();
            ("write_copies", all.into_bound_py_any(py)?)
        }
        Request::RemoveCopies(ids) => ("remove_copies", ids.into_bound_py_any(py)?),
    })
}

fn event(event: Event) -> (&'static str, String) {
    match event {
        Event::Warning(text) => ("warning", text),
        Event::Fetched => ("fetched", String::new()),
        Event::PutBack => ("put_back", String::new()),
        Event::Mended => ("mended", String::new()),
        Event::CatalogueLost => ("catalogue_lost", String::new()),
    }
}

fn reply(reply: &Bound<'_, PyAny>) -> Result<Reply, Failure> {
    if let Ok(failed) = reply.cast::<Failed>() {
        let Failed { is_denied, reason } = failed.get();
        let failure = if *is_denied { Failure::Denied } else { Failure::Refused };
        return Err(failure(reason.clone()));
    }
    Ok(if reply.is_none() {
        Reply::Nil
    } else if let Ok(bytes) = reply.cast::<PyBytes>() {
        Reply::Bytes(bytes.as_bytes().to_vec())
    } else if let Ok(text) = reply.cast::<PyString>() {
        Reply::Bytes(text.to_string_lossy().into_owned().into_bytes())
    } else if reply.is_instance_of::<PyInt>() {
        // Callbacks make a bool of OK, which is one of these.
        Reply::Integer(reply.extract().unwrap_or(i64::MAX))
    } else {
        Reply::Other
    })
}
