//! Nanoseconds for reading a command, as clients do, and for finding its keys, as routers do.
//!
//! `cargo bench -p snugly-commands`

use std::hint::black_box;
use std::time::{Duration, Instant};

use snugly_commands::{Found, Interpreter, Meaning, ValueType, keys};

const ROUND: Duration = Duration::from_millis(100);
const ROUNDS: usize = 7;
const BATCH: usize = 64;

fn main() {
    println!("{:<34} {:>10} {:>10}", "", "read ns", "keys ns");
    let many = |name: &str, group: &[&str]| {
        let groups = (0..20).flat_map(|_| group.iter().copied());
        std::iter::once(name).chain(groups).map(str::to_owned).collect::<Vec<_>>()
    };
    let value = "v".repeat(900);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    measure("GET", &words("GET user:1"));
    measure("get, in small letters", &words("get user:1"));
    measure("SET", &words(&format!("SET user:1 {value}")));
    measure("SET with EX and NX", &words(&format!("SET user:1 {value} EX 60 NX")));
    measure("SET with a value as an option", &words(&format!("SET user:1 {value} {value}")));
    measure("MGET of 20", &many("MGET", &["user:1"]));
    measure("MSET of 20", &many("MSET", &["user:1", &value]));
    measure("HSET of one field", &words(&format!("HSET user:1 name {value}")));
    measure("XADD with MAXLEN", &words("XADD events MAXLEN ~ 1000 * type login user 1"));
    measure("INCR", &words("INCR counter"));
    measure("XGROUP CREATE, by its subcommand", &words("XGROUP CREATE events group 0"));
    measure("EVAL of two keys", &words("EVAL script 2 a b c"));
    measure("an unknown command", &words("FT.SEARCH index query"));
    measure("STRLEN, which is refused", &words("STRLEN user:1"));
}

fn measure(name: &str, args: &[String]) {
    let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
    let interpreter = Interpreter::new(ValueType::ALL);
    let mut found = Found::default();
    let read = best(|| match interpreter.read(black_box(&args[..]), &mut found) {
        Ok(Meaning::Touched { reply }) => found.values().len() + usize::from(reply.is_some()),
        Ok(Meaning::Untouched | Meaning::Unknown) | Err(_) => 0,
    });
    let mut found = Found::default();
    let found_keys = best(|| keys(black_box(&args[..]), &mut found).map_or(0, <[usize]>::len));
    println!("{name:<34} {read:>10.1} {found_keys:>10.1}");
}

/// Nanoseconds per call, in the best round.
fn best(mut run: impl FnMut() -> usize) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (start, mut calls) = (Instant::now(), 0);
        while start.elapsed() < ROUND {
            for _ in 0..BATCH {
                black_box(run());
            }
            calls += BATCH;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / calls as f64);
    }
    best
}
