//! Places for connections: so many in all, and so many for each address.
//!
//! It knows numbers and addresses. It does not know what connections are for.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;
use snugly_net::{Slot, Slots};

/// Addresses without connections that are kept at least, so that forgetting them is rare.
const KEPT: usize = 64;

/// Places that are taken.
#[derive(Default)]
pub(crate) struct Places {
    all: Slots,
    by_address: Mutex<HashMap<IpAddr, Slots>>,
}

impl Places {
    /// Takes a place if fewer than `most` are taken, and fewer than `most_of_address` by this address; 0 is no limit of that.
    pub(crate) fn take(&self, most: usize, address: Option<IpAddr>, most_of_address: usize) -> Option<Slot> {
        let slot = self.all.take(most)?;
        match address.filter(|_| most_of_address > 0) {
            None => Some(slot),
            Some(address) => Some(slot.and(self.take_of(address, most_of_address)?)),
        }
    }

    fn take_of(&self, address: IpAddr, most: usize) -> Option<Slot> {
        let mut by_address = self.by_address.lock();
        if by_address.len() > KEPT + 2 * self.taken() {
            by_address.retain(|_, slots| slots.taken() > 0);
        }
        by_address.entry(address.to_canonical()).or_default().take(most)
    }

    /// Number of places taken at this moment.
    pub(crate) fn taken(&self) -> usize {
        self.all.taken()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[test]
    fn an_address_has_its_own_limit_and_gives_back_what_it_took() {
        let places = Places::default();
        let first = places.take(10, address(1), 1).expect("it is the first");
        assert!(places.take(10, address(1), 1).is_none());
        assert!(places.take(10, address(2), 1).is_some());
        assert!(places.take(10, None, 1).is_some(), "a path has no address");
        assert_eq!(places.taken(), 1, "one that is refused takes no place at all");
        drop(first);
        assert!(places.take(10, address(1), 1).is_some());
        assert!(places.take(0, address(1), 1).is_none());
    }

    #[test]
    fn addresses_that_have_gone_are_forgotten() {
        let places = Places::default();
        for number in 0..1000 {
            drop(places.take(10, address(number), 1).expect("there is room"));
        }
        assert!(places.by_address.lock().len() <= KEPT + 1);
    }
}
