//! The wire format of IPC event descriptors. No driver is involved.

use cuda_events::ipc::DescriptorError;
use cuda_events::{IpcEventDescriptor, Uuid};

const LEN: usize = IpcEventDescriptor::LEN;

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
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
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
    IpcEventDescriptor::from_bytes(bytes).expect_err("it is damaged")
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
    assert_eq!(bytes[124..128], crc32fast::hash(&bytes[..124]).to_le_bytes());
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
fn other_bytes_are_distinguished_from_damaged_ones() {
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
