//! A thread's virtual machine, made when its first script runs, with the scripts that it has compiled.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use snugly_scripting::{
    CompileError, Digest, Engine, EngineError, Header, HeaderError, LibraryError, Registered, Script, digest,
    split_library,
};
use thiserror::Error;

use super::functions::{Functions, Library};
use super::sources::{Source, Sources};
use crate::replies::Replies;

/// Number of compiled scripts that a thread keeps; with more than that it begins anew.
const MOST_COMPILED: usize = 1_000;

/// Reason why a script does not run.
#[derive(Debug, Error)]
pub(crate) enum Unusable {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Code(#[from] CompileError),
    #[error(transparent)]
    Library(#[from] LibraryError),
}

/// A compiled script of this thread.
pub(crate) struct Compiled {
    pub(crate) script: Script,
    pub(crate) header: Header,
}

/// A thread's virtual machine.
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    /// Room for the replies of commands that scripts run.
    pub(crate) scratch: Replies,
    by_text: HashMap<Box<[u8]>, Rc<Compiled>>,
    by_digest: HashMap<Digest, Rc<Compiled>>,
    edition: u64,
    /// Functions that were called, by their names in lower case.
    functions: HashMap<Vec<u8>, Rc<Compiled>>,
    /// Libraries that are loaded, by name. What their code keeps is each thread's own.
    libraries: HashMap<String, Loaded>,
    functions_edition: u64,
    /// Bytes that are counted in the sum of all machines.
    counted: u64,
}

/// A library that is loaded.
struct Loaded {
    library: Arc<Library>,
    functions: HashMap<Vec<u8>, Rc<Compiled>>,
}

thread_local! {
    static MACHINE: Cell<Option<Machine>> = const { Cell::new(None) };
}

/// Does something with this thread's machine, whose scripts may take `memory` bytes. One that panics is not used again.
///
/// # Errors
/// If there is no memory for a machine.
pub(crate) fn with_machine<R>(
    memory: usize,
    total: &AtomicU64,
    work: impl FnOnce(&mut Machine) -> R,
) -> Result<R, EngineError> {
    let mut machine = match MACHINE.take() {
        Some(machine) => machine,
        None => Machine::new(memory)?,
    };
    machine.engine.set_memory_limit(memory);
    let result = work(&mut machine);
    machine.count(total);
    MACHINE.set(Some(machine));
    Ok(result)
}

impl Machine {
    fn new(memory: usize) -> Result<Machine, EngineError> {
        Ok(Machine {
            engine: Engine::new(memory)?,
            scratch: Replies::default(),
            by_text: HashMap::new(),
            by_digest: HashMap::new(),
            edition: 0,
            functions: HashMap::new(),
            libraries: HashMap::new(),
            functions_edition: 0,
            counted: 0,
        })
    }

    /// Brings the machine's share of the sum up to date.
    fn count(&mut self, total: &AtomicU64) {
        let bytes = self.engine.memory() as u64;
        if bytes != self.counted {
            // A wrapping addition of the difference is a subtraction where there is less.
            total.fetch_add(bytes.wrapping_sub(self.counted), Ordering::Relaxed);
            self.counted = bytes;
        }
    }

    /// Forgets scripts that the server has forgotten.
    pub(crate) fn follow(&mut self, sources: &Sources) {
        let edition = sources.edition();
        if self.edition != edition {
            self.edition = edition;
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.by_text.clear();
        self.by_digest.clear();
    }

    /// The compiled form of a script of EVAL, which is known from then on.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn evaluated(&mut self, text: &[u8], sources: &Sources) -> Result<Rc<Compiled>, Unusable> {
        if let Some(compiled) = self.by_text.get(text) {
            return Ok(compiled.clone());
        }
        let (source, compiled) = self.compile(text)?;
        sources.evaluate(source);
        self.by_text.insert(text.into(), compiled.clone());
        Ok(compiled)
    }

    /// The compiled form of a script that is known by its digest; `None` if there is none.
    ///
    /// # Errors
    /// The reason why it is refused here, and was not when it became known: memory.
    pub(crate) fn known(
        &mut self,
        digest: &Digest,
        sources: &Sources,
    ) -> Result<Option<Rc<Compiled>>, Unusable> {
        if let Some(compiled) = self.by_digest.get(digest) {
            return Ok(Some(compiled.clone()));
        }
        let Some(source) = sources.get(digest) else { return Ok(None) };
        let (_, compiled) = self.compile(&source.text)?;
        Ok(Some(compiled))
    }

    /// Compiles a script, and keeps it by its digest.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn compile(&mut self, text: &[u8]) -> Result<(Arc<Source>, Rc<Compiled>), Unusable> {
        let (header, code) = Header::split(text)?;
        let compiled = Rc::new(Compiled { script: self.engine.compile(code)?, header });
        if self.by_digest.len() >= MOST_COMPILED {
            self.forget();
        }
        let digest = digest(text);
        self.by_digest.insert(digest, compiled.clone());
        Ok((Arc::new(Source { text: text.into(), digest }), compiled))
    }

    /// A function, of a library that is loaded for it if it is not yet; `None` if there is none of this name.
    ///
    /// # Errors
    /// The reason why the library is refused here, and was not when it was added: memory.
    pub(crate) fn function(
        &mut self,
        name: &[u8],
        functions: &Functions,
    ) -> Result<Option<Rc<Compiled>>, Unusable> {
        let edition = functions.edition();
        if self.functions_edition != edition {
            self.functions_edition = edition;
            self.functions.clear();
            let current = functions.libraries();
            let is_current = |loaded: &Loaded| {
                current.get(&loaded.library.name).is_some_and(|library| Arc::ptr_eq(library, &loaded.library))
            };
            self.libraries.retain(|_, loaded| is_current(loaded));
        }
        let name = name.to_ascii_lowercase();
        if let Some(function) = self.functions.get(&name) {
            return Ok(Some(function.clone()));
        }
        let Some(library) = functions.library_of(&name) else { return Ok(None) };
        if !self.libraries.contains_key(&library.name) {
            let (_, code) = split_library(&library.source)?;
            let functions = compiled(self.engine.load_library(code)?);
            self.libraries.insert(library.name.clone(), Loaded { library: library.clone(), functions });
        }
        let function = self.libraries.get(&library.name).and_then(|loaded| loaded.functions.get(&name));
        if let Some(function) = function {
            self.functions.insert(name, function.clone());
        }
        Ok(function.cloned())
    }

    /// Loads a library to see what it registers.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub(crate) fn read_library(&mut self, source: &[u8]) -> Result<Library, Unusable> {
        let (name, code) = split_library(source)?;
        let registered = self.engine.load_library(code)?;
        Ok(Library::new(name, source, &registered))
    }
}

fn compiled(functions: Vec<Registered>) -> HashMap<Vec<u8>, Rc<Compiled>> {
    let by_name = functions.into_iter().map(|Registered { name, script, header, .. }| {
        (name.to_ascii_lowercase(), Rc::new(Compiled { script, header }))
    });
    by_name.collect()
}
