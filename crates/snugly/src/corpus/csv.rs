//! CSV exports: a header and rows, as reports and spreadsheets take them.

use super::sampler::Sampler;

pub fn export(sampler: &mut Sampler, index: u64, size: usize) -> String {
    let mut out =
        String::from("id,customer,email,town,country_code,product,sku,quantity,unit_price,currency,");
    out.push_str("time_zone,created_at,updated_at,status\n");
    let mut id = index * 100;
    let (created, updated) = (sampler.timestamp(), sampler.timestamp());
    let country = sampler.one_of(&["DE", "FR", "GB", "ES", "US", "JP", "BR", "IN"]);
    let time_zone = sampler.time_zone();
    loop {
        id += sampler.number(1..4);
        let customer = sampler.name();
        let email = customer.to_ascii_lowercase().replace(' ', ".");
        let row = format!(
            "{id},{customer},{email}@example.com,{},{country},{} {},{},{},{}.{:02},EUR,{time_zone},{created},{updated},{}\n",
            sampler.town(),
            sampler.adjective(),
            sampler.noun(),
            sampler.number(10_000..99_999),
            sampler.skewed(20) + 1,
            sampler.skewed(300),
            sampler.one_of(&[0, 49, 50, 90, 95, 99]),
            sampler.one_of(&["shipped", "shipped", "shipped", "paid", "returned"]),
        );
        out.push_str(&row);
        if out.len() + row.len() / 2 > size {
            return out;
        }
    }
}
