//! Makes the seeds of the fuzz targets (`fuzz/seeds`): small well-formed inputs that fuzzing starts from.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use snugly_codec::envelope::{self, Options};
use snugly_codec::{Choice, Counters, Dictionary, Encoder};

/// The number of the dictionary in the records, as `fuzz/src/lib.rs` has it.
const NUMBER: u32 = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let samples: Vec<Vec<u8>> = (0..2_000).map(document).collect();
    let dictionary = Dictionary::train(&samples, 1_024)?;
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("dictionary.zdict"), dictionary.bytes())?;

    let values = [document(1), document(2).repeat(20), vec![b'a'; 5_000], (0..=255).collect(), Vec::new()];
    for (number, value) in values.iter().enumerate() {
        for name in ["none", "lz4", "zstd", "lzf"] {
            let choice = if name == "lzf" { Choice::lzf(0) } else { Choice::new(name, None, 0)? };
            let file = format!("{name}-{number}");
            let mut encoder = Encoder::new(Arc::new(Counters::default()));
            let mut record = vec![0];
            encoder.encode(choice, value, 0, |bytes| bytes).append_to(&mut record);
            write(&folder, "record", &file, &record)?;
            let options = Options { choice, ..Options::default() };
            if let Some(sent) = enveloped(&options, None, value) {
                write(&folder, "envelope", &file, &[&[0], &sent[..]].concat())?;
                write(&folder, name, &format!("envelope-{number}"), &payload(value, &sent[5..]))?;
            }
            if name != "none" && record[1] != 0 {
                let record = encoder.encode(choice, value, 0, |bytes| bytes);
                write(&folder, name, &format!("record-{number}"), &payload(value, record.payload()))?;
            }
        }
        for (name, target) in [("zstd", "dictionary"), ("lz4", "lz4_dictionary")] {
            let choice = Choice::new(name, None, 0)?;
            let mut encoder = Encoder::new(Arc::new(Counters::default()));
            let record = encoder.encode_with(choice, Some((NUMBER, &dictionary)), value, 0, |bytes| bytes);
            write(&folder, target, &format!("record-{number}"), &payload(value, record.payload()))?;
            let options = Options { choice, ..Options::default() };
            if let Some(sent) = enveloped(&options, Some(&dictionary), value) {
                write(&folder, target, &format!("envelope-{number}"), &payload(value, &sent[5..]))?;
            }
        }
    }
    write(&folder, "dictionary", "itself", &[&[3], &dictionary.bytes()[8..]].concat())
}

fn enveloped(options: &Options, dictionary: Option<&Dictionary>, value: &[u8]) -> Option<Vec<u8>> {
    let mut sent = Vec::new();
    envelope::encode_with(options, dictionary, value, &mut sent);
    (!sent.is_empty()).then_some(sent)
}

/// What the targets of a single backend take: the value's length in three bytes, then the payload.
fn payload(value: &[u8], payload: &[u8]) -> Vec<u8> {
    [&(value.len() as u32).to_le_bytes()[..3], payload].concat()
}

fn write(folder: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = folder.join(target);
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join(name), bytes)?)
}

fn document(number: u32) -> Vec<u8> {
    let scrambled = number.wrapping_mul(2_654_435_761);
    format!(
        r#"{{"id":{number},"name":"user {}","email":"user{}@example.com","score":{},"active":{}}}"#,
        scrambled % 1_000,
        scrambled % 977,
        scrambled >> 20,
        number.is_multiple_of(3)
    )
    .into_bytes()
}
