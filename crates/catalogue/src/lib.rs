//! The catalogue: which dictionaries there are beside the data in a server that others run, and which one writers use
//! for which keys (`spec/dictionaries.md`).
//!
//! It knows the names of keys, the JSON document, patterns and times. It must not know how keys are read and written, or
//! what is in a dictionary: there is no I/O and no clock here.
//!
//! ```
//! use snugly_catalogue::{Catalogue, Entry, Keys};
//!
//! let mut catalogue = Catalogue::default();
//! catalogue.add(Entry { id: 475_556_249, pattern: "*".into(), ..Entry::default() });
//! catalogue.add(Entry { id: 1_346_910_358, pattern: "user:*".into(), ..Entry::default() });
//! let document = catalogue.encode()?;
//!
//! let catalogue = Catalogue::decode(&document)?;
//! assert_eq!(catalogue.active_for(b"user:7"), Some(1_346_910_358));
//! assert_eq!(Keys::new(Keys::DEFAULT_PREFIX).dictionary(1_346_910_358), b"{snugly}:dict:1346910358");
//! # Ok::<(), snugly_catalogue::CatalogueError>(())
//! ```

mod document;
mod keys;
mod pattern;

pub use document::{Active, Catalogue, CatalogueError, Choice, Entry};
pub use keys::Keys;
