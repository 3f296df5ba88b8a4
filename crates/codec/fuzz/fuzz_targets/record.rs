//! Any bytes as a record, and as a value to put into one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snugly_codec::Record;
use snugly_codec_fuzz::{choice, decode_record, round_trip};

fuzz_target!(|data: &[u8]| {
    let Some((&settings, bytes)) = data.split_first() else { return };
    if let Ok(record) = Record::parse(bytes) {
        let mut written = Vec::new();
        record.append_to(&mut written);
        assert_eq!(written, bytes);
        let _ = decode_record(&record);
    }
    round_trip(choice(settings), None, bytes);
});
