//! JSON documents as APIs answer them.

use super::sampler::{Sampler, slug};

/// From this size on a document is a page of records.
const PAGE: usize = 1500;
/// Below this size a document is a small operational record.
const RECORD: usize = 450;

pub fn document(sampler: &mut Sampler, index: u64, size: usize) -> String {
    match size {
        PAGE.. => page(sampler, index, size),
        RECORD.. => article(sampler, index, size),
        _ => event(sampler, index, size),
    }
}

/// A page of articles, as a search answers it.
fn page(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let query = sampler.noun();
    let total = sampler.number(20..5000);
    let mut out = format!(r#"{{"page":{index},"query":"{query}","total":{total},"results":["#);
    let mut first = true;
    while first || out.len() + 250 < size {
        if !first {
            out.push(',');
        }
        first = false;
        let wanted = sampler.number(420..760).min(size.saturating_sub(out.len()).max(420));
        let id = sampler.number(1..u64::from(u32::MAX));
        out.push_str(&article(sampler, id, wanted));
    }
    out.push_str("]}");
    out
}

fn article(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let title = sampler.title();
    let slug = slug(&title);
    let (author, topic) = (sampler.name(), sampler.topic());
    let mut out = format!(
        r#"{{"id":{index},"title":"{title}","author":{{"id":{},"name":"{author}"}},"topic":"{topic}","tags":["{}","{}"],"#,
        sampler.number(1000..99999),
        sampler.noun(),
        sampler.noun(),
    );
    out.push_str(&format!(
        r#""published_at":"{}","url":"https://www.example.com/{topic}/{}/{slug}","#,
        sampler.timestamp(),
        sampler.number(2015..2027),
    ));
    if sampler.chance(70) {
        out.push_str(&format!(
            r#""image":{{"src":"https://cdn.example.com/{}/{slug}.jpg","width":{},"height":{}}},"#,
            sampler.hex(2),
            sampler.number(200..1600),
            sampler.number(200..1200),
        ));
    }
    let stats = format!(
        r#","views":{},"rating":{}.{},"premium":{}}}"#,
        sampler.skewed(900_000),
        sampler.number(1..5),
        sampler.number(0..10),
        sampler.chance(20),
    );
    let summary = sampler.prose(&title, size.saturating_sub(out.len() + stats.len() + 12));
    out.push_str(&format!(r#""summary":"{summary}""#));
    out.push_str(&stats);
    out
}

/// A change as payment and audit systems record it.
fn event(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let object = sampler.one_of(&["invoice", "order", "subscription", "account"]);
    let mut out = format!(
        r#"{{"id":"evt_{index:x}","type":"{object}.updated","user":{},"created_at":"{}","#,
        sampler.number(1000..9_999_999),
        sampler.timestamp(),
    );
    let currency = sampler.one_of(&["EUR", "USD", "GBP", "JPY"]);
    let state = |sampler: &mut Sampler| {
        let status = sampler.one_of(&["draft", "open", "paid", "void", "closed"]);
        format!(r#"{{"status":"{status}","amount":{},"currency":"{currency}"}}"#, sampler.skewed(100_000))
    };
    out.push_str(&format!(r#""before":{},"after":{},"#, state(sampler), state(sampler)));
    let request = format!(r#""ip":"{}","request":"req_{}"}}"#, sampler.ip_address(), sampler.base64(10));
    if out.len() + request.len() + 60 < size {
        let note = sampler.prose(object, size - out.len() - request.len() - 10);
        out.push_str(&format!(r#""note":"{note}","#));
    }
    out.push_str(&request);
    out
}
