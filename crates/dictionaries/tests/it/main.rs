//! Dictionaries beside the data of a server: documents, requests, and what every language does with them.

mod properties;
mod transcripts;
mod vectors;
