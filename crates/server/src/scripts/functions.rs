//! The libraries of functions.
//!
//! They are in memory only: what is to outlive the server is loaded again, or restored from FUNCTION DUMP.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use snugly_scripting::Registered;

use super::refused::Refused;

/// Bytes of all libraries together.
const MOST_BYTES: usize = 64 << 20;

/// A library of functions.
pub(crate) struct Library {
    pub(crate) name: String,
    /// The source, its first line included.
    pub(crate) source: Box<[u8]>,
    pub(crate) functions: Vec<Function>,
}

/// A function, without what runs.
pub(crate) struct Function {
    pub(crate) name: Vec<u8>,
    pub(crate) description: Option<Vec<u8>>,
    pub(crate) flags: Vec<String>,
}

/// What becomes of libraries that are there already when others are restored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// They stay, and none of the same name is taken.
    Append,
    /// They are replaced by those of the same name.
    Replace,
    /// They go.
    Flush,
}

/// Libraries by their names.
type Libraries = BTreeMap<String, Arc<Library>>;

/// All libraries of a server.
#[derive(Default)]
pub(crate) struct Functions {
    libraries: RwLock<Arc<Libraries>>,
    /// Held while libraries are changed.
    changing: Mutex<()>,
    /// Number of changes.
    edition: AtomicU64,
}

impl Library {
    /// A library whose code has registered these functions.
    pub(crate) fn new(name: String, source: &[u8], registered: &[Registered]) -> Library {
        let functions = registered.iter().map(|function| Function {
            name: function.name.clone(),
            description: function.description.clone(),
            flags: function.flags.clone(),
        });
        Library { name, source: source.into(), functions: functions.collect() }
    }

    fn has(&self, name: &[u8]) -> bool {
        self.functions.iter().any(|function| function.name.eq_ignore_ascii_case(name))
    }
}

impl Functions {
    /// All libraries, as they are now.
    pub(crate) fn libraries(&self) -> Arc<Libraries> {
        self.libraries.read().clone()
    }

    /// Number of changes so far.
    pub(crate) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// The library of a function.
    pub(crate) fn library_of(&self, function: &[u8]) -> Option<Arc<Library>> {
        self.libraries().values().find(|library| library.has(function)).cloned()
    }

    /// Returns whether a function says of itself that it writes nothing.
    pub(crate) fn only_reads(&self, function: &[u8]) -> bool {
        let library = self.library_of(function);
        let named = library.iter().flat_map(|library| &library.functions);
        let mut named = named.filter(|other| other.name.eq_ignore_ascii_case(function));
        named.any(|function| function.flags.iter().any(|flag| flag == "no-writes"))
    }

    /// Numbers of libraries and functions, and the bytes of the sources.
    pub(crate) fn totals(&self) -> (usize, usize, usize) {
        let libraries = self.libraries();
        let functions = libraries.values().map(|library| library.functions.len()).sum();
        (libraries.len(), functions, bytes(&libraries))
    }

    /// Adds libraries, all or none.
    ///
    /// # Errors
    /// A name that there is already, of a library or of a function, or too many bytes.
    pub(crate) fn add(&self, added: Vec<Library>, policy: Policy) -> Result<(), Refused> {
        let _alone = self.changing.lock();
        let mut libraries = match policy {
            Policy::Append | Policy::Replace => Libraries::clone(&self.libraries()),
            Policy::Flush => Libraries::new(),
        };
        for library in added {
            if policy == Policy::Replace {
                libraries.remove(&library.name);
            } else if libraries.contains_key(&library.name) {
                return Err(Refused::LibraryExists(library.name));
            }
            let taken = |function: &&Function| libraries.values().any(|other| other.has(&function.name));
            if let Some(function) = library.functions.iter().find(taken) {
                return Err(Refused::FunctionExists(String::from_utf8_lossy(&function.name).into_owned()));
            }
            libraries.insert(library.name.clone(), Arc::new(library));
        }
        if bytes(&libraries) > MOST_BYTES {
            return Err(Refused::TooManyLibraries { most: MOST_BYTES });
        }
        self.replace(libraries);
        Ok(())
    }

    /// Removes a library; returns whether it was there.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let _alone = self.changing.lock();
        let mut libraries = Libraries::clone(&self.libraries());
        let was_there = libraries.remove(name).is_some();
        if was_there {
            self.replace(libraries);
        }
        was_there
    }

    /// Removes all libraries.
    pub(crate) fn flush(&self) {
        let _alone = self.changing.lock();
        self.replace(Libraries::new());
    }

    fn replace(&self, libraries: Libraries) {
        *self.libraries.write() = Arc::new(libraries);
        self.edition.fetch_add(1, Ordering::Release);
    }
}

fn bytes(libraries: &Libraries) -> usize {
    libraries.values().map(|library| library.source.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, functions: &[&str]) -> Library {
        let functions = functions.iter().map(|function| Function {
            name: function.as_bytes().to_vec(),
            description: None,
            flags: Vec::new(),
        });
        Library { name: name.to_owned(), source: name.as_bytes().into(), functions: functions.collect() }
    }

    fn names(functions: &Functions) -> Vec<String> {
        functions.libraries().keys().cloned().collect()
    }

    #[test]
    fn names_of_libraries_and_functions_are_taken_once() {
        let functions = Functions::default();
        functions.add(vec![library("a", &["f"])], Policy::Append).expect("it is the first");
        for taken in [library("a", &["g"]), library("b", &["F"])] {
            assert!(functions.add(vec![taken], Policy::Append).is_err());
        }
        functions.add(vec![library("a", &["f", "g"])], Policy::Replace).expect("the old one goes");
        assert_eq!(functions.totals(), (1, 2, 1));
        assert_eq!(functions.library_of(b"G").map(|library| library.name.clone()), Some("a".to_owned()));
    }

    #[test]
    fn several_are_added_all_or_none() {
        let functions = Functions::default();
        functions.add(vec![library("a", &["f"])], Policy::Append).expect("it is the first");
        let edition = functions.edition();
        assert!(functions.add(vec![library("b", &["g"]), library("c", &["f"])], Policy::Append).is_err());
        assert_eq!((names(&functions), functions.edition()), (vec!["a".to_owned()], edition));
        functions.add(vec![library("c", &["f"])], Policy::Flush).expect("the others go");
        assert_eq!(names(&functions), ["c"]);
        assert!(functions.remove("c") && !functions.remove("c"));
        assert_ne!(functions.edition(), edition);
    }
}
