//! What several samples share: a dictionary is kept for long and handed to others, and must not hold what one value
//! alone says.

use std::collections::HashMap;

/// So many bytes in a row are looked for.
const FRAGMENT: usize = 8;
/// A fragment of as many samples is nobody's own.
const LEAST_SAMPLES: u32 = 3;

/// In how many samples a fragment was found, and in which one last.
#[derive(Clone, Copy)]
struct Found {
    samples: u32,
    last: usize,
}

/// The parts of `content` of which any eight bytes in a row stand in several samples, one after the other.
pub(super) fn fragments(content: &[u8], samples: &[&[u8]]) -> Vec<u8> {
    let nowhere = Found { samples: 0, last: usize::MAX };
    let mut fragments: HashMap<u64, Found> = windows(content).map(|fragment| (fragment, nowhere)).collect();
    for (number, sample) in samples.iter().enumerate() {
        for fragment in windows(sample) {
            if let Some(found) = fragments.get_mut(&fragment)
                && found.last != number
            {
                *found = Found { samples: found.samples + 1, last: number };
            }
        }
    }
    let mut kept = Vec::with_capacity(content.len());
    // Up to where the content is kept or dropped for good.
    let mut done = 0;
    for (start, fragment) in windows(content).enumerate() {
        if fragments[&fragment].samples >= LEAST_SAMPLES {
            kept.extend_from_slice(&content[start.max(done)..start + FRAGMENT]);
            done = start + FRAGMENT;
        }
    }
    kept
}

/// All fragments of some bytes.
fn windows(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.windows(FRAGMENT).map(|window| u64::from_ne_bytes(window.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_several_samples_is_kept_and_nothing_else() {
        let samples =
            [&b"{\"name\":\"Anna Nowak\"}"[..], b"{\"name\":\"Jo\"}", b"{\"name\":\"Kim\"}", b"Anna Nowak"];
        assert_eq!(fragments(b"xx{\"name\":\"Anna Nowak\"}", &samples), b"{\"name\":\"");
        assert_eq!(fragments(b"Anna Nowak", &samples), b"");
        assert_eq!(fragments(b"short", &samples), b"");
    }

    #[test]
    fn one_sample_counts_once_however_often_it_says_something() {
        assert_eq!(fragments(b"a secret", &[b"a secret a secret a secret", b"a secret"]), b"");
        assert_eq!(fragments(b"no secret", &[&b"no secret"[..]; 3]), b"no secret");
    }
}
