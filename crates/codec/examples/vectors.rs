//! Makes snugly's part of the test vectors: `spec/vectors/make.py` runs it, and any language's tests can.
//!
//! A line of standard input is a job: backend (`zstd` or `lz4`), level or `default`, the dictionary in
//! hexadecimal or `-`, and the value in hexadecimal. The line that answers it is what a client would send, in
//! hexadecimal.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::thread;

use snugly_codec::envelope::{self, Options, Outcome};
use snugly_codec::{Choice, Dictionary};

/// The format's default `min_compression_size`, in bytes.
const MIN_BYTES: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    for line in stdin().lock().lines() {
        let line = line?;
        // A thread of its own for each job: an encoder that has just met random bytes tries less hard.
        let sent = thread::scope(|scope| {
            scope
                .spawn(|| run(&line).map_err(|error| error.to_string()))
                .join()
                .expect("the job does not panic")
        })?;
        writeln!(stdout(), "{}", hex(&sent))?;
    }
    Ok(())
}

fn run(line: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let [backend, level, dictionary, value] =
        line.split(' ').collect::<Vec<_>>().try_into().map_err(|_| "a job has four fields")?;
    let level = if level == "default" { None } else { Some(level.parse()?) };
    let dictionary = if dictionary == "-" { None } else { Some(Dictionary::load(unhex(dictionary)?)?) };
    let options = Options { choice: Choice::new(backend, level, MIN_BYTES)?, ..Options::default() };
    let value = unhex(value)?;
    let mut sent = Vec::new();
    match envelope::encode_with(&options, dictionary.as_ref(), &value, &mut sent) {
        Outcome::Encoded { .. } => Ok(sent),
        Outcome::AsIs(_) => Ok(value),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    (0..text.len())
        .step_by(2)
        .map(|at| Ok(u8::from_str_radix(text.get(at..at + 2).ok_or("odd")?, 16)?))
        .collect()
}
