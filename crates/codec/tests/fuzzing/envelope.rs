//! Any bytes as an envelope, and as a value to put into one.

use crate::checks::{LIMIT, choice, decode_envelope, round_trip};
use snugly_codec::envelope;

pub fn run(data: &[u8]) {
    let Some((&settings, value)) = data.split_first() else { return };
    let inspected = envelope::inspect(value);
    if let Some(envelope) = inspected {
        let _ = (envelope.claimed_len(), envelope.dictionary_id(), envelope.is_well_formed(LIMIT));
    }
    match decode_envelope(value) {
        Ok(None) => assert!(inspected.is_none()),
        Ok(Some(_)) => assert!(inspected.is_some_and(|envelope| envelope.is_well_formed(LIMIT))),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    round_trip(choice(settings), None, value);
}
