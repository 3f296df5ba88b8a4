//! The values of a pipeline, encoded on several threads while the interpreter's lock is free.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{process, thread};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use snugly_client::{Encoded, Encoding, Method};

use crate::codec::{Codec, TOGETHER_FROM};

/// The threads of this process, and its ID: a child inherits none of its parent's.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// One value.
struct Job<'a> {
    value: &'a [u8],
    encoding: Encoding,
    result: OnceLock<(Encoded, Vec<u8>)>,
}

impl Job<'_> {
    fn run(&self) {
        let mut envelope = Vec::new();
        // Where there is no memory, the value is sent as it is.
        let _ = envelope.try_reserve(self.value.len());
        let encoded = self.encoding.run(self.value, &mut envelope);
        // Each job is run once.
        let _ = self.result.set((encoded, envelope));
    }
}

/// The envelopes of values, each with how it is to be written, in their order; None for a value that is to be sent as it
/// is.
pub(crate) fn encode(codec: &Codec, py: Python<'_>, values: Vec<(&[u8], Method)>) -> Vec<Option<Vec<u8>>> {
    let cost: usize = values.iter().map(|(value, method)| method.cost(value.len())).sum();
    let job = |(value, method)| Job { value, encoding: codec.encoding(py, method), result: OnceLock::new() };
    let jobs: Vec<Job<'_>> = values.into_iter().map(job).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            job.run();
        }
    };
    match pool().filter(|_| cost >= TOGETHER_FROM) {
        None => work(),
        Some(pool) => py.detach(|| {
            pool.in_place_scope(|scope| {
                let helpers = pool.current_num_threads().min(jobs.len() - 1);
                (0..helpers).for_each(|_| scope.spawn(|_| work()));
                work();
            });
        }),
    }
    let envelope = |job: Job<'_>| {
        let (encoded, envelope) = job.result.into_inner()?;
        codec.count_encoded(py, &encoded).then_some(envelope)
    };
    jobs.into_iter().map(envelope).collect()
}

/// Pool of as many threads as can run besides the caller's.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    if let Some((owner, pool)) = &*pool
        && *owner == process
    {
        return Some(pool.clone());
    }
    let helpers = thread::available_parallelism().ok()?.get() - 1;
    if helpers == 0 {
        return None;
    }
    let threads = ThreadPoolBuilder::new().num_threads(helpers).thread_name(|_| "snugly-encode".to_owned());
    let made = Arc::new(threads.build().ok()?);
    // A parent's threads are not here, so there is nothing to end.
    std::mem::forget(pool.replace((process, made.clone())));
    Some(made)
}
