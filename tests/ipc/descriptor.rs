//! The wire format of IPC event descriptors. No driver is involved.

use cuda_events::ipc::DescriptorError;
use cuda_events::{Error, IpcEventDescriptor, Uuid};

const LEN: usize = IpcEventDescriptor::LEN;

/// CRC-32 (ISO-HDLC) bit by bit, so that the library's is checked against another.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// The version that this release writes.
const VERSION: u16 = 2;

/// What says where an event comes from.
#[derive(Clone, Copy)]
struct Origin {
    pid: u32,
    uuid: [u8; 16],
    started: u64,
    pid_namespace: u32,
    time_namespace: u32,
    boot: [u8; 16],
}

const NOWHERE: Origin = Origin {
    pid: 0,
    uuid: [0; 16],
    started: 0,
    pid_namespace: 0,
    time_namespace: 0,
    boot: [0; 16],
};

fn origin() -> Origin {
    Origin {
        pid: PID,
        uuid: uuid(),
        started: 0x1112_1314_1516_1718,
        pid_namespace: 0x2122_2324,
        time_namespace: 0x3132_3334,
        boot: std::array::from_fn(|index| 0xb0 + index as u8),
    }
}

/// An envelope by the documented layout.
fn envelope(version: u16, flags: u16, origin: Origin, handle: [u8; 64]) -> Vec<u8> {
    let mut bytes = b"CUEV".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes.extend(origin.pid.to_le_bytes());
    bytes.extend(origin.uuid);
    bytes.extend(origin.started.to_le_bytes());
    bytes.extend(origin.pid_namespace.to_le_bytes());
    bytes.extend(origin.time_namespace.to_le_bytes());
    bytes.extend(origin.boot);
    bytes.extend(handle);
    bytes.extend(crc32(&bytes).to_le_bytes());
    bytes
}

const PID: u32 = 0x0102_0304;

fn uuid() -> [u8; 16] {
    std::array::from_fn(|index| 0xa0 + index as u8)
}

fn handle() -> [u8; 64] {
    std::array::from_fn(|index| (3 * index + 1) as u8)
}

/// A good envelope with all that it can carry.
fn good() -> Vec<u8> {
    envelope(VERSION, 3, origin(), handle())
}

#[track_caller]
fn refusal(bytes: &[u8]) -> DescriptorError {
    match IpcEventDescriptor::from_bytes(bytes) {
        Err(Error::Descriptor(error)) => error,
        other => panic!("{other:?} for {bytes:02x?}"),
    }
}

/// A pseudo-random sequence (xorshift64*), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next() >> 56) as u8).collect()
    }
}

#[test]
fn the_tests_own_crc_is_the_documented_one() {
    // The check value of CRC-32/ISO-HDLC in every catalogue.
    assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
}

#[test]
fn reads_the_documented_layout() {
    let descriptor = IpcEventDescriptor::from_bytes(&good()).expect("a good envelope");
    assert_eq!(descriptor.exporter_pid(), Some(PID));
    assert_eq!(descriptor.device_uuid(), Some(Uuid::from_bytes(uuid())));
    assert!(descriptor.is_blocking_sync());
    assert_eq!(descriptor.to_raw(), handle());
}

#[test]
fn writes_the_documented_layout() {
    let bytes = IpcEventDescriptor::from_bytes(&good()).expect("a good envelope").to_bytes();
    assert_eq!(bytes.len(), 128);
    assert_eq!(bytes[0..4], *b"CUEV");
    assert_eq!(bytes[4..6], [2, 0]);
    assert_eq!(bytes[6..8], [3, 0]);
    assert_eq!(bytes[8..12], [4, 3, 2, 1]);
    assert_eq!(bytes[12..28], uuid());
    assert_eq!(bytes[28..36], [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11]);
    assert_eq!(bytes[36..40], [0x24, 0x23, 0x22, 0x21]);
    assert_eq!(bytes[40..44], [0x34, 0x33, 0x32, 0x31]);
    assert_eq!(bytes[44..60], origin().boot);
    assert_eq!(bytes[60..124], handle());
    assert_eq!(bytes[124..128], crc32(&bytes[..124]).to_le_bytes());
}

#[test]
fn every_combination_of_flags_survives_the_journey() {
    for flags in 0..4 {
        let known = flags & 2 != 0;
        let bytes = envelope(VERSION, flags, if known { origin() } else { NOWHERE }, handle());
        let descriptor = IpcEventDescriptor::from_bytes(&bytes).expect("a good envelope");
        assert_eq!(descriptor.is_blocking_sync(), flags & 1 != 0);
        assert_eq!(descriptor.exporter_pid(), known.then_some(PID));
        assert_eq!(descriptor.device_uuid(), known.then_some(Uuid::from_bytes(uuid())));
        assert_eq!(descriptor.to_bytes().as_slice(), bytes);
        assert_eq!(IpcEventDescriptor::from_bytes(&descriptor.to_bytes()), Ok(descriptor));
    }
}

#[test]
fn one_other_field_makes_them_unequal() {
    let descriptor =
        |bytes: Vec<u8>| IpcEventDescriptor::from_bytes(&bytes).expect("a good envelope");
    let mut other_handle = handle();
    other_handle[63] ^= 1;
    let mut all = vec![
        descriptor(good()),
        descriptor(envelope(VERSION, 2, origin(), handle())),
        descriptor(envelope(VERSION, 1, NOWHERE, handle())),
        descriptor(envelope(VERSION, 3, origin(), other_handle)),
    ];
    let changes: [fn(&mut Origin); 6] = [
        |origin| origin.pid += 1,
        |origin| origin.uuid[0] ^= 1,
        |origin| origin.started ^= 1,
        |origin| origin.pid_namespace ^= 1,
        |origin| origin.time_namespace ^= 1,
        |origin| origin.boot[15] ^= 1,
    ];
    for change in changes {
        let mut other = origin();
        change(&mut other);
        all.push(descriptor(envelope(VERSION, 3, other, handle())));
    }
    for (one, descriptor) in all.iter().enumerate() {
        for (other, another) in all.iter().enumerate() {
            assert_eq!(descriptor == another, one == other, "{one} and {other}");
        }
    }
}

#[test]
fn the_drivers_own_bytes_convert_both_ways() {
    for blocking_sync in [false, true] {
        let descriptor = IpcEventDescriptor::from_raw(handle(), blocking_sync);
        assert_eq!(descriptor.to_raw(), handle());
        assert_eq!(descriptor.is_blocking_sync(), blocking_sync);
        assert_eq!(descriptor.exporter_pid(), None);
        assert_eq!(descriptor.device_uuid(), None);
        let bytes = descriptor.to_bytes();
        assert_eq!(
            bytes.as_slice(),
            envelope(VERSION, u16::from(blocking_sync), NOWHERE, handle())
        );
        assert_eq!(IpcEventDescriptor::from_bytes(&bytes), Ok(descriptor));
    }
}

#[test]
fn truncated_at_every_length() {
    for length in 0..LEN {
        let expected = DescriptorError::Length { found: length as u32, expected: 128 };
        assert_eq!(refusal(&good()[..length]), expected);
    }
}

#[test]
fn too_long() {
    for extra in [1, 2, 32, 128, 1 << 16] {
        let mut bytes = good();
        bytes.resize(LEN + extra, 0);
        assert_eq!(
            refusal(&bytes),
            DescriptorError::Length { found: (LEN + extra) as u32, expected: 128 }
        );
    }
    // Two in a row: a reader that forgot to cut them apart.
    assert_eq!(
        refusal(&[good(), good()].concat()),
        DescriptorError::Length { found: 256, expected: 128 }
    );
}

#[test]
fn other_bytes_are_told_from_damaged_ones() {
    // The driver's 64 bytes without their envelope, as PyTorch sends them; text; zeros.
    for bytes in [&handle()[..], b"{\"event\": \"0123456789\"}", &[0; LEN], &[0; 4]] {
        assert_eq!(refusal(bytes), DescriptorError::Magic);
    }
}

#[test]
fn another_version_is_named() {
    for version in [0, 1, 3, 256, 512, u16::MAX] {
        let bytes = envelope(version, 3, origin(), handle());
        assert_eq!(refusal(&bytes), DescriptorError::Version { found: version, expected: VERSION });
        // Another version may have another length, which says nothing to this reader.
        assert_eq!(
            refusal(&[&bytes[..], &[0; 32]].concat()),
            DescriptorError::Version { found: version, expected: VERSION }
        );
        assert_eq!(
            refusal(&bytes[..96]),
            DescriptorError::Version { found: version, expected: VERSION }
        );
    }
}

#[test]
fn flags_that_nobody_has_defined_are_refused() {
    for bit in 2..16 {
        for known in 0..4 {
            let bytes = envelope(VERSION, known | 1 << bit, origin(), handle());
            assert_eq!(
                refusal(&bytes),
                DescriptorError::Flags { unknown: 1 << bit },
                "{known} and bit {bit}"
            );
        }
    }
    assert_eq!(
        refusal(&envelope(VERSION, 0xfffd, origin(), handle())),
        DescriptorError::Flags { unknown: 0xfffc }
    );
    // A damaged one is told to be damaged, whatever it says.
    let mut bytes = envelope(VERSION, 4, origin(), handle());
    bytes[20] ^= 1;
    assert_eq!(refusal(&bytes), DescriptorError::Checksum);
}

#[test]
fn every_single_flipped_bit_is_refused() {
    for bit in 0..8 * LEN {
        let mut bytes = good();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0..4 => DescriptorError::Magic,
            4..6 => {
                DescriptorError::Version { found: VERSION ^ 1 << (bit - 32), expected: VERSION }
            }
            _ => DescriptorError::Checksum,
        };
        assert_eq!(refusal(&bytes), expected, "bit {bit}");
    }
}

#[test]
fn flipped_bits_and_bytes_are_refused() {
    let mut bytes = good();
    for one in 0..8 * LEN {
        bytes[one / 8] ^= 1 << (one % 8);
        for other in 0..one {
            bytes[other / 8] ^= 1 << (other % 8);
            assert!(IpcEventDescriptor::from_bytes(&bytes).is_err(), "bits {one} and {other}");
            bytes[other / 8] ^= 1 << (other % 8);
        }
        bytes[one / 8] ^= 1 << (one % 8);
    }
    for place in 0..LEN {
        for value in (0..=u8::MAX).filter(|value| *value != good()[place]) {
            bytes[place] = value;
            assert!(IpcEventDescriptor::from_bytes(&bytes).is_err(), "byte {place} as {value}");
        }
        bytes[place] = good()[place];
    }
}

#[test]
fn random_bytes_are_refused_without_a_panic() {
    let mut random = Random(0x5eed);
    for round in 0..20_000 {
        let length = if round % 2 == 0 { LEN } else { (random.next() % 300) as usize };
        let mut bytes = random.bytes(length);
        // Some get past the first checks.
        for (place, value) in bytes.iter_mut().zip(&good()[..(round % 8)]) {
            *place = *value;
        }
        refusal(&bytes);
    }
}

#[test]
fn random_contents_survive_the_journey() {
    let mut random = Random(0xcafe);
    for _ in 0..2_000 {
        let handle = random.bytes(64).try_into().expect("64 bytes");
        let uuid = random.bytes(16).try_into().expect("16 bytes");
        let origin = Origin {
            pid: random.next() as u32,
            uuid,
            started: random.next(),
            pid_namespace: random.next() as u32,
            time_namespace: random.next() as u32,
            boot: random.bytes(16).try_into().expect("16 bytes"),
        };
        let bytes = envelope(VERSION, 2 | (random.next() & 1) as u16, origin, handle);
        let descriptor = IpcEventDescriptor::from_bytes(&bytes).expect("a good envelope");
        assert_eq!(descriptor.to_raw(), handle);
        assert_eq!(descriptor.to_bytes().as_slice(), bytes);
    }
}
