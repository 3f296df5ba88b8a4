//! Any bytes as a zstd payload, compared with libzstd's own answer, and as a value to compress with it.

use crate::checks::{LIMIT, decode_envelope, decode_payload, round_trip};
use snugly_codec::{Choice, CodecId};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

pub fn run(data: &[u8]) {
    decode_payload(CodecId::Zstd, data);
    if let Some((&[level, ..], value)) = data.split_first_chunk::<3>() {
        compare_with_libzstd(value);
        let level = i32::from(level as i8).min(6);
        round_trip(Choice::new("zstd", Some(level), 0).expect("the level is in range"), None, value);
    }
}

/// What both of libzstd's decoders accept as one frame, an envelope decodes to the same; what either refuses, an
/// envelope refuses. (In one call it accepts blocks of one repeated byte that are larger than a block may be; in a
/// stream, compressed blocks of no bytes at all.)
fn compare_with_libzstd(frame: &[u8]) {
    let mut value = vec![0; LIMIT];
    let decoded = streamed(frame).filter(|streamed| {
        frame.starts_with(b"\x28\xb5\x2f\xfd")
            && zstd_safe::decompress(&mut value[..], frame).is_ok_and(|len| streamed == &value[..len])
    });
    let ours = decode_envelope(&[b"\0\x01\x02\0\x01", frame].concat());
    match decoded {
        Some(_) => assert_eq!(ours.expect("libzstd decodes it"), decoded),
        None => assert!(ours.is_err(), "libzstd does not decode it"),
    }
}

/// The answer of the streaming decoder, which takes the other way as long as it can see the whole frame: the last
/// byte comes late.
fn streamed(frame: &[u8]) -> Option<Vec<u8>> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::WindowLogMax(31)).expect("libzstd knows the parameter");
    // Without it, the window that the frame declares would be reserved.
    context.set_parameter(DParameter::StableOutBuffer(true)).expect("libzstd knows the parameter");
    let mut value = vec![0; LIMIT];
    let mut output = OutBuffer::around(&mut value[..]);
    let mut input = InBuffer::around(&frame[..frame.len().saturating_sub(1)]);
    while input.pos() < input.src.len() {
        let (before, written) = (input.pos(), output.pos());
        let wanted = context.decompress_stream(&mut output, &mut input).ok()?;
        if wanted == 0 || (input.pos() == before && output.pos() == written) {
            return None;
        }
    }
    let mut input = InBuffer::around(&frame[frame.len().saturating_sub(1)..]);
    let wanted = context.decompress_stream(&mut output, &mut input).ok()?;
    let len = output.pos();
    (wanted == 0 && input.pos() == 1).then(|| value[..len].to_vec())
}
