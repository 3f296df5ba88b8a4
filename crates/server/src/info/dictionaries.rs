//! What is learned for values that are alike: from how much, and what came of it.

use snugly_store::DictionaryStats;

use super::Fields;
use crate::server::Server;

pub(super) fn dictionaries(server: &Server, fields: &mut Fields) {
    let samples = server.store().sample_stats();
    let dictionaries = server.store().dictionaries();
    fields.add("dictionaries_enabled", u8::from(server.configuration().dictionaries));
    fields.add("dictionary_classes", samples.classes);
    fields.add("dictionary_samples", samples.samples);
    fields.add("dictionary_sample_bytes", samples.bytes);
    fields.add("dictionary_trainings", samples.trainings);
    fields.add("dictionary_adoptions", samples.adopted);
    fields.add("dictionaries", dictionaries.len());
    fields.add("dictionaries_active", dictionaries.iter().filter(|dictionary| dictionary.active).count());
    fields.add("dictionary_bytes", dictionaries.iter().map(|dictionary| dictionary.memory).sum::<usize>());
    fields.add("dictionary_records", dictionaries.iter().map(|dictionary| dictionary.records).sum::<u64>());
    for dictionary in &dictionaries {
        fields.add(&format!("dictionary_{}", dictionary.number), line(dictionary));
    }
}

/// One dictionary. The pattern is at the end, since it may hold commas.
fn line(dictionary: &DictionaryStats) -> String {
    let DictionaryStats { id, min_len, max_len, bytes, memory, samples, records, active, .. } = dictionary;
    let ratio_now = dictionary.ratio_now.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"));
    format!(
        "id={id},active={},min_len={min_len},max_len={max_len},bytes={bytes},memory={memory},samples={samples},\
         ratio_before={:.3},ratio_after={:.3},ratio_now={ratio_now},records={records},trained_at={},pattern={}",
        u8::from(*active),
        dictionary.ratio_before,
        dictionary.ratio_after,
        dictionary.trained_at,
        dictionary.pattern.escape_ascii(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_is_one_line_whatever_its_pattern() {
        let dictionary = DictionaryStats {
            number: 3,
            id: 40_000,
            pattern: b"a,b\r\n:*".to_vec(),
            min_len: 128,
            max_len: 512,
            bytes: 8_192,
            memory: 160_000,
            samples: 900,
            ratio_before: 0.75,
            ratio_after: 0.25,
            ratio_now: None,
            records: 20_000,
            trained_at: 1_700_000_000_000,
            active: true,
        };
        assert_eq!(
            line(&dictionary),
            "id=40000,active=1,min_len=128,max_len=512,bytes=8192,memory=160000,samples=900,ratio_before=0.750,\
             ratio_after=0.250,ratio_now=-,records=20000,trained_at=1700000000000,pattern=a,b\\r\\n:*"
        );
    }
}
