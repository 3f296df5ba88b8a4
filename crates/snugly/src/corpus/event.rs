//! Events as applications keep them in lists: JSON records of one form, and nearly the same one again and again.

use super::sampler::Sampler;

/// A record whose names repeat and whose ids, times, people and words do not.
pub fn varied(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let object = sampler.one_of(&["invoice", "order", "basket", "account"]);
    let action = sampler.one_of(&["created", "updated", "updated", "updated", "closed"]);
    let (given, family) = (sampler.given_name(), sampler.family_name());
    let email = format!("{given}.{family}@example.com").to_ascii_lowercase();
    let mut out = format!(
        concat!(
            r#"{{"event_id":"evt_{index:012x}","type":"{object}.{action}","occurred_at":"{time}","#,
            r#""user":{{"id":{user},"name":"{given} {family}","email":"{email}"}},"#,
            r#""request":{{"id":"{request}","method":"POST","path":"/api/v2/{object}s/{number}","status":{status},"#,
            r#""duration_ms":{duration},"ip":"{ip}"}},"source":"{object}-service","currency":"EUR","#,
            r#""amount":{amount},"message":""#,
        ),
        index = index,
        object = object,
        action = action,
        time = sampler.timestamp(),
        user = sampler.number(1000..9_999_999),
        given = given,
        family = family,
        email = email,
        request = sampler.hex(16),
        number = sampler.number(1..999_999),
        status = sampler.one_of(&[200, 200, 200, 201, 409]),
        duration = sampler.skewed(2000),
        ip = sampler.ip_address(),
        amount = sampler.skewed(100_000),
    );
    let message = sampler.prose(object, size.saturating_sub(out.len() + 2));
    out.push_str(&message);
    out.push_str(r#""}"#);
    out
}

/// A record of `size` bytes, or some 80 at least, that differs from others in nothing but its number.
pub fn repetitive(series: u64, index: u64, size: usize) -> String {
    const PHRASE: &str = "the same page was looked at again, ";
    let mut out = format!(r#"{{"event_id":"evt_{series}_{index:012}","type":"page.viewed","message":""#);
    let end = r#""}"#;
    out.extend(PHRASE.chars().cycle().take(size.saturating_sub(out.len() + end.len())));
    out.push_str(end);
    out
}
