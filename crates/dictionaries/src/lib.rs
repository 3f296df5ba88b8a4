//! The dictionaries beside the data in a server that others run (`spec/dictionaries.md`).
//!
//! - [`Catalogue`]: the document that lists the dictionaries, and the one that writers use for each pattern
//!   of keys
//! - [`Keys`]: the keys of the document and the dictionaries
//! - [`DictionaryCache`]: the dictionaries that a client holds, and those that it writes with
//! - [`Manager`]: the requests of a client to its server about them, as [tasks](Task) for a driver
//!
//! It must not know connections, threads, clocks or files, nor how values are encoded: there is no I/O here.
//!
//! ```
//! use snugly_dictionaries::{Catalogue, Entry, Keys};
//!
//! let mut catalogue = Catalogue::default();
//! catalogue.add(Entry { id: 475_556_249, pattern: "*".into(), ..Entry::default() });
//! catalogue.add(Entry { id: 1_346_910_358, pattern: "user:*".into(), ..Entry::default() });
//! let document = catalogue.encode()?;
//!
//! let catalogue = Catalogue::decode(&document)?;
//! assert_eq!(catalogue.active_for(b"user:7"), Some(1_346_910_358));
//! assert_eq!(Keys::new(Keys::DEFAULT_PREFIX).dictionary(1_346_910_358), b"{snugly}:dict:1346910358");
//! # Ok::<(), snugly_dictionaries::CatalogueError>(())
//! ```

mod cache;
mod document;
mod exchange;
mod keys;
mod manager;
mod pattern;

pub use cache::{DictionaryCache, Needed, Snapshot};
pub use document::{Active, Catalogue, CatalogueError, Choice, Entry};
pub use exchange::{Answer, Command, Event, Failure, Next, Now, Reply, Request, Step, Task};
pub use keys::Keys;
pub use manager::{Found, Manager, Settings};
