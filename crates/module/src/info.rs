//! The module's section of INFO.

use std::ffi::{CString, c_int};
use std::sync::atomic::Ordering;

use snugly_codec::DESCRIPTORS;

use crate::background::{self, PROGRESS, Purpose};
use crate::dictionaries;
use crate::guard;
use crate::server::table::{self, InfoCtx, functions};
use crate::values;

/// Adds the section, if it is asked for.
pub unsafe extern "C" fn report(context: *mut InfoCtx, _for_crash: c_int) {
    guard::guarded(|| {
        // SAFETY: the server hands this over for the time of the call, and copies names and values.
        if unsafe { (functions().InfoAddSection)(context, c"".as_ptr()) } != table::OK {
            return;
        }
        let version = CString::new(env!("CARGO_PKG_VERSION")).expect("a version has no zero");
        // SAFETY: as above.
        unsafe { (functions().InfoAddFieldCString)(context, c"version".as_ptr(), version.as_ptr()) };
        let counted = values::counted();
        for descriptor in &DESCRIPTORS {
            add(context, &descriptor.to_string(), descriptor.value(&counted));
        }
        let state = match background::purpose() {
            Purpose::Compress => c"compressing",
            Purpose::Restore { .. } => c"restoring",
            Purpose::Rest => c"restored",
        };
        // SAFETY: as above.
        unsafe { (functions().InfoAddFieldCString)(context, c"state".as_ptr(), state.as_ptr()) };
        for (name, count) in [
            ("background_rounds", &PROGRESS.rounds),
            ("background_compressed_strings", &PROGRESS.compressed),
            ("background_compressed_bytes_before", &PROGRESS.bytes_before),
            ("background_compressed_bytes_after", &PROGRESS.bytes_after),
            ("background_restored_strings", &PROGRESS.restored),
            ("background_damaged_strings", &PROGRESS.damaged),
            ("observed_strings", &PROGRESS.observed_strings),
            ("observed_bytes_before", &PROGRESS.observed_bytes_before),
            ("observed_bytes_after", &PROGRESS.observed_bytes_after),
        ] {
            add(context, name, count.load(Ordering::Relaxed));
        }
        let (number, memory) = dictionaries::with(|known| {
            (known.all().count(), known.all().map(|dictionary| dictionary.memory_taken()).sum::<usize>())
        });
        add(context, "dictionaries", number as u64);
        add(context, "dictionary_memory_bytes", memory as u64);
        add(context, "dictionaries_chosen", dictionaries::with(|known| known.chosen().len()) as u64);
        add(context, "dictionaries_learned", dictionaries::learned());
        add(context, "panics", guard::panics());
    });
}

fn add(context: *mut InfoCtx, name: &str, value: u64) {
    let name = CString::new(name).expect("names have no zero");
    // SAFETY: the server hands the context over for the time of the call, and copies the name.
    unsafe { (functions().InfoAddFieldULongLong)(context, name.as_ptr(), value) };
}
