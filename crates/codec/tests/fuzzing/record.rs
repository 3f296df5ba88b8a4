//! Any bytes as a record, and as a value to put into one.

use crate::checks::{choice, decode_record, round_trip};
use snugly_codec::Record;

pub fn run(data: &[u8]) {
    let Some((&settings, bytes)) = data.split_first() else { return };
    if let Ok(record) = Record::parse(bytes) {
        let mut written = Vec::new();
        record.append_to(&mut written);
        assert_eq!(written, bytes);
        let _ = decode_record(&record);
    }
    round_trip(choice(settings), None, bytes);
}
