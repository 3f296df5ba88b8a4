//! The store inside a program of one's own, without a server: `cargo run -p snugly-store --example embedded`.

use std::error::Error;
use std::sync::Arc;
use std::thread;

use snugly_store::{Choice, Condition, Config, EvictionPolicy, Expiry, Store, StoreError, system_time};

const DATABASE: usize = 0;
const THREADS: usize = 4;
const PAGES: usize = 5_000;
const MINUTE: u64 = 60_000;

fn main() -> Result<(), Box<dyn Error>> {
    // zstd at its default level for values of 256 bytes and more, in at most 2 MiB; what is not used makes room.
    let mut config = Config::new(Choice::new("zstd", None, 256)?);
    config.settings.max_memory = 2 << 20;
    config.settings.eviction = EvictionPolicy::AllKeysLru;
    let store = Store::new(config);

    thread::scope(|scope| {
        let store = &store;
        let spawn = |writer| scope.spawn(move || write_pages(store, writer));
        let writers: Vec<_> = (0..THREADS).map(spawn).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("no writer panics"))
    })?;
    println!("{} of {} pages fit", store.database_stats(DATABASE).expect("readable").keys, THREADS * PAGES);

    let mut session = store.session();
    let in_a_minute = Expiry::At(system_time() + MINUTE);
    session.set(DATABASE, b"latest", page(7).as_bytes(), in_a_minute, Condition::IfAbsent)?;
    let value = session.get(DATABASE, b"latest")?.expect("it was just written");
    let mut bytes = Vec::new();
    session.read(&value, &mut bytes)?;
    let codec = value.record().expect("a string has a record").codec();
    println!("{} bytes take {} with key and overhead, by {codec}", bytes.len(), value.memory());

    // A session never shows a key whose time has come. Calling this now and then gives their memory back.
    let expired = store.expire_due(system_time() + 2 * MINUTE, usize::MAX);
    println!("{expired} expired; {} evicted; {} bytes used", store.stats().evicted, store.used_memory());
    Ok(())
}

/// Writes a quarter of the pages through a session of the thread's own.
fn write_pages(store: &Arc<Store>, writer: usize) -> Result<(), StoreError> {
    let mut session = store.session();
    for number in (0..PAGES).map(|page| writer * PAGES + page) {
        let key = format!("page:{number}");
        session.set(DATABASE, key.as_bytes(), page(number).as_bytes(), Expiry::Never, Condition::Always)?;
    }
    Ok(())
}

fn page(number: usize) -> String {
    let row = |row| format!(r#"{{"id": {}, "name": "row {row}", "in_stock": true}}"#, number * 20 + row);
    format!("[{}]", (0..20).map(row).collect::<Vec<_>>().join(", "))
}
