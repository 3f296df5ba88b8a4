//! Possible savings of a live server, and dictionaries for it: `analyze`, `explain` and `train`, for any Valkey, Redis
//! or snugly, alone or as a cluster; `ping`, whether it answers; and `backup`, a copy of what a snugly server stores.
//!
//! - [`address`], [`node`], [`deployment`]: where servers are, one of them, and all that hold the data
//! - [`pace`], [`sampling`]: keys and values, read slowly, until there are enough or somebody stops it
//! - [`census`]: which keys are of one kind
//! - [`values`]: what a stored value is, and what it was before somebody compressed it
//! - [`evaluation`]: what each way to compress would save and cost
//! - [`traffic`]: which commands are used, and what a compressing client makes of them
//! - [`catalogue`]: the dictionaries that lie beside the data
//!
//! Only `train` writes, and only the keys of dictionaries. Nothing here is of the server of this program: it asks as any
//! client does.

pub(crate) mod address;
pub(crate) mod analyze;
pub(crate) mod backup;
mod catalogue;
mod census;
pub(crate) mod deployment;
mod evaluation;
pub(crate) mod explain;
pub(crate) mod node;
mod pace;
pub(crate) mod ping;
mod sampling;
mod traffic;
pub(crate) mod train;
pub(crate) mod units;
mod values;
