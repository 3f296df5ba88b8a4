//! Tickets as a help desk keeps them: JSON records of which half of the words stand in no other one, so that no dictionary
//! knows them.

use super::sampler::{Sampler, capitalised};

/// A record of about `size` bytes.
pub fn ticket(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let (given, family) = (capitalised(&unknown_word(sampler)), capitalised(&unknown_word(sampler)));
    let mut out = format!(
        concat!(
            r#"{{"id":{index},"status":"{status}","priority":"{priority}","opened_at":"{opened}","#,
            r#""requester":{{"name":"{given} {family}","email":"{email}@{host}.example","language":"{language}"}},"#,
            r#""product":"{noun}-{product}","order":"{order}","tags":["{tag}","{own_tag}"],"description":""#,
        ),
        index = index,
        status = sampler.one_of(&["open", "pending", "pending", "solved", "solved", "closed"]),
        priority = sampler.one_of(&["low", "normal", "normal", "high"]),
        opened = sampler.timestamp(),
        given = given,
        family = family,
        email = given.to_ascii_lowercase(),
        host = unknown_word(sampler),
        language = sampler.one_of(&["en", "en", "de", "fr", "is"]),
        noun = sampler.noun(),
        product = unknown_word(sampler),
        order = sampler.hex(12),
        tag = sampler.noun(),
        own_tag = unknown_word(sampler),
    );
    let end = r#""}"#;
    loop {
        let word = match sampler.chance(50) {
            true => unknown_word(sampler),
            false => sampler.noun().to_owned(),
        };
        if out.len() + word.len() + end.len() > size {
            break;
        }
        out.push_str(&word);
        out.push(' ');
    }
    out.truncate(out.trim_end().len());
    out.push_str(end);
    out
}

/// Letters that make no word of any vocabulary.
fn unknown_word(sampler: &mut Sampler) -> String {
    let len = sampler.number(3..=9);
    (0..len).map(|_| char::from(sampler.number(b'a'..=b'z'))).collect()
}
