//! Whatever the samples are, a dictionary is trained from them or they are refused.

use snugly_codec::Dictionary;

/// Reads samples of up to 31 bytes, each behind its length.
pub fn run(input: &[u8]) {
    let Some((&size, mut rest)) = input.split_first() else { return };
    let mut samples = Vec::new();
    while let Some((&len, behind)) = rest.split_first() {
        let (sample, others) = behind.split_at(usize::from(len % 32).min(behind.len()));
        samples.push(sample);
        rest = others;
    }
    let most = Dictionary::MIN_TRAINED_BYTES + 16 * usize::from(size);
    if let Ok(dictionary) = Dictionary::train(&samples, most) {
        assert!(dictionary.bytes().len() <= most);
    }
}
