//! The module's section of INFO.

use std::ffi::{CString, c_int};

use crate::guard;
use crate::server::table::{self, InfoCtx, functions};
use crate::statistics::{self, Field};

/// Adds the section, if it is asked for.
pub unsafe extern "C" fn report(context: *mut InfoCtx, _for_crash: c_int) {
    guard::guarded(|| {
        // SAFETY: the server hands this over for the time of the call.
        if unsafe { (functions().InfoAddSection)(context, c"".as_ptr()) } != table::OK {
            return;
        }
        for (name, field) in statistics::fields() {
            let name = text(&name);
            match field {
                // SAFETY: as above; the server copies names and words.
                Field::Number(number) => unsafe {
                    (functions().InfoAddFieldULongLong)(context, name.as_ptr(), number);
                },
                // SAFETY: as above.
                Field::Word(word) => unsafe {
                    (functions().InfoAddFieldCString)(context, name.as_ptr(), text(word).as_ptr());
                },
            }
        }
    });
}

fn text(text: &str) -> CString {
    CString::new(text).expect("names and words have no zero")
}
