//! `math.random` and `math.randomseed` as Valkey has them: the same sequence of a seed on every machine.
//!
//! It knows the generator drand48, and nothing of the other libraries. Unlike in Valkey, a seed is one of its script alone:
//! the next script has random numbers again.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;

use mlua::{Lua, Table, Value};

use super::functions::{Arguments, Failure, define};

/// The linear congruential generator of drand48: 48 bits of state.
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const STATE: u64 = (1 << 48) - 1;
/// What is below the seed in the first state.
const LOW: u64 = 0x330E;

/// What numbers are reduced by: Valkey takes its greatest number for their count.
const COUNT: u64 = i32::MAX as u64;

/// A sequence of random numbers, which begins anywhere.
pub(super) struct Sequence {
    state: Cell<u64>,
    /// The state before a script gave a seed.
    before: Cell<Option<u64>>,
}

impl Default for Sequence {
    fn default() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self { state: Cell::new(random & STATE), before: Cell::new(None) }
    }
}

impl Sequence {
    /// Begins the sequence of the seed.
    fn seed(&self, seed: i32) {
        let state = self.state.replace(u64::from(seed as u32) << 16 | LOW);
        self.before.set(self.before.get().or(Some(state)));
    }

    /// Goes on with the sequence as it was before the first seed.
    pub(super) fn reset(&self) {
        if let Some(state) = self.before.take() {
            self.state.set(state);
        }
    }

    /// The next number, from 0 up to 1.
    fn next(&self) -> f64 {
        let state = self.state.get().wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & STATE;
        self.state.set(state);
        ((state >> 17) % COUNT) as f64 / COUNT as f64
    }
}

/// Replaces the two functions of the table `math`.
pub(super) fn replace(lua: &Lua, math: &Table, sequence: &Rc<Sequence>) -> mlua::Result<()> {
    let of_random = Rc::clone(sequence);
    define(lua, math, "random", move |arguments| random(arguments, &of_random))?;
    let of_seed = Rc::clone(sequence);
    define(lua, math, "randomseed", move |arguments| {
        of_seed.seed(arguments.int(1)?);
        Ok(())
    })
}

/// A number below 1, an integer up to the argument, or one between both arguments.
fn random(arguments: &Arguments, sequence: &Sequence) -> Result<Value, Failure> {
    let number = sequence.next();
    let (position, low, high) = match arguments.len() {
        0 => return Ok(Value::Number(number)),
        1 => (1, 1, arguments.int(1)?),
        2 => (2, arguments.int(1)?, arguments.int(2)?),
        _ => return Err(Failure::message("wrong number of arguments")),
    };
    if low > high {
        return Err(Failure::argument(position, "interval is empty"));
    }
    let count = high.wrapping_sub(low).wrapping_add(1);
    Ok(Value::Number((number * f64::from(count)).floor() + f64::from(low)))
}
