//! Images in the form that NVIDIA's compiler writes, built by hand: the tests need none of its files.

// Not each test file uses all of it.
#![allow(dead_code)]

mod images;

pub use images::*;

pub const LZ4: u64 = 0x2011;
pub const ZSTD: u64 = 0x8011;

/// A fat binary with `entries`: kind, architecture, flags, length of the header, payload before
/// compression.
pub fn fatbin(entries: &[(u16, u32, u64, u32, &[u8])]) -> Vec<u8> {
    let pack = |&(kind, architecture, flags, header, payload): &(_, _, _, _, &[u8])| {
        let packed = match flags {
            LZ4 => lz4_flex::block::compress(payload),
            ZSTD => ruzstd::encoding::compress_to_vec(
                payload,
                ruzstd::encoding::CompressionLevel::Fastest,
            ),
            _ => payload.to_vec(),
        };
        Packed { kind, architecture, flags, header, packed, bytes: payload.len() }
    };
    packed_fatbin(&entries.iter().map(pack).collect::<Vec<_>>())
}
