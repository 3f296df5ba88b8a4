//! Web sessions: who is logged in, tokens, a basket; as PHP serialises them or as JSON.

use super::sampler::Sampler;

pub fn session(sampler: &mut Sampler, index: u64, size: usize) -> String {
    if sampler.chance(50) { php(sampler, index, size) } else { json(sampler, index, size) }
}

/// The output of PHP's session handler: `name|value` pairs in the format of serialize().
fn php(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let mut out = String::new();
    out.push_str(&format!("_token|{}", php_string(&sampler.base64(40))));
    out.push_str(&format!("user_id|i:{index};name|{}", php_string(&sampler.name())));
    out.push_str(&format!(
        "locale|{}",
        php_string(sampler.one_of(&["en_GB", "en_US", "de_DE", "fr_FR", "es_ES"]))
    ));
    out.push_str(&format!("last_seen|i:{};", sampler.number(1_600_000_000..1_790_000_000)));
    let mut items = Vec::new();
    while out.len() + items.iter().map(String::len).sum::<usize>() + 90 < size {
        items.push(format!(
            "i:{};a:4:{{s:3:\"sku\";{}s:4:\"name\";{}s:3:\"qty\";i:{};s:5:\"price\";d:{}.{:02};}}",
            items.len(),
            php_string(&sampler.hex(8).to_ascii_uppercase()),
            php_string(&format!("{} {}", sampler.adjective(), sampler.noun())),
            sampler.number(1..6),
            sampler.skewed(300),
            sampler.number(0..100),
        ));
    }
    out.push_str(&format!("basket|a:{}:{{{}}}", items.len(), items.concat()));
    out
}

fn php_string(text: &str) -> String {
    format!("s:{}:\"{text}\";", text.len())
}

fn json(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let (given, family) = (sampler.given_name(), sampler.family_name());
    let email = format!("{}.{}@example.com", given, family).to_ascii_lowercase();
    let mut out = format!(
        r#"{{"sid":"{}","csrf":"{}","user":{{"id":{index},"name":"{given} {family}","email":"{email}"}},"#,
        sampler.base64(32),
        sampler.hex(40),
    );
    out.push_str(&format!(
        r#""ip":"{}","time_zone":"{}","created_at":"{}","basket":["#,
        sampler.ip_address(),
        sampler.time_zone(),
        sampler.timestamp(),
    ));
    let mut separator = "";
    while out.len() + 70 < size {
        out.push_str(&format!(
            r#"{separator}{{"sku":"{}","name":"{} {}","qty":{},"price":{}.{:02}}}"#,
            sampler.hex(8).to_ascii_uppercase(),
            sampler.adjective(),
            sampler.noun(),
            sampler.number(1..6),
            sampler.skewed(300),
            sampler.number(0..100),
        ));
        separator = ",";
    }
    out.push_str("]}");
    out
}
