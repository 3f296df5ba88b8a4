//! Properties of catalogues: any one reads back as it was written, and other bytes are an error.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use snugly_dictionaries::{Catalogue, Entry};

fn entries() -> impl Strategy<Value = Entry> {
    let ratio = || option::of(0.0..10.0f64);
    let times = ("[0-9TZ:-]{0,20}", option::of(any::<u64>()));
    (any::<u32>(), any::<u64>(), "\\PC{0,20}", times, any::<u64>(), ratio(), ratio()).prop_map(
        |(id, bytes, pattern, (trained_at, published_at), samples, ratio_before, ratio_after)| Entry {
            id,
            bytes,
            pattern,
            trained_at,
            published_at,
            samples,
            ratio_before,
            ratio_after,
            ..Entry::default()
        },
    )
}

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(entries in vec(entries(), 0..20)) {
        let mut catalogue = Catalogue::default();
        entries.into_iter().for_each(|entry| catalogue.add(entry));
        prop_assert_eq!(Catalogue::decode(&catalogue.encode().unwrap()), Ok(catalogue));
    }

    #[test]
    fn any_bytes_are_a_catalogue_or_an_error(document in vec(any::<u8>(), 0..200)) {
        if let Ok(catalogue) = Catalogue::decode(&document) {
            prop_assert_eq!(Catalogue::decode(&catalogue.encode().unwrap()), Ok(catalogue));
        }
    }

    #[test]
    fn each_pattern_is_active_once_with_its_last_dictionary(rows in vec(("[ab*?]{1,3}", any::<u32>()), 1..20)) {
        let mut catalogue = Catalogue::default();
        for (pattern, id) in &rows {
            catalogue.add(Entry { id: *id, pattern: pattern.clone(), ..Entry::default() });
        }
        for (pattern, _) in &rows {
            let last = rows.iter().rev().find(|row| row.0 == *pattern).map(|row| row.1);
            let active: Vec<u32> =
                catalogue.active.iter().filter(|row| row.pattern == *pattern).map(|row| row.id).collect();
            prop_assert_eq!(active, Vec::from_iter(last));
        }
    }
}
