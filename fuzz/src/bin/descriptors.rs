//! Descriptors: bytes, text and serde, and what a slow reader says of the same bytes.
#![no_main]

use cuda_events::ipc::{DescriptorError, IpcEventDescriptor};
use cuda_events_fuzz::crc32;
use cuda_timelines::{SharedTimelineError, TimelineDescriptor};
use libfuzzer_sys::fuzz_target;

/// What is wrong with an envelope, as far as all kinds have it in common.
#[derive(PartialEq, Eq, Debug)]
enum Wrong {
    Length,
    Magic,
    Version(u16),
    Checksum,
    Field(u16),
}

/// What a slow reader of an envelope finds.
fn expected(bytes: &[u8], magic: &[u8; 4], version: u16, length: usize) -> Result<(), Wrong> {
    let Some(found) = bytes.get(..4) else { return Err(Wrong::Length) };
    if found != magic {
        return Err(Wrong::Magic);
    }
    let Some(found) = bytes.get(4..6) else { return Err(Wrong::Length) };
    let found = u16::from(found[0]) | u16::from(found[1]) << 8;
    if found != version {
        return Err(Wrong::Version(found));
    }
    if bytes.len() != length {
        return Err(Wrong::Length);
    }
    let (body, check) = bytes.split_at(length - 4);
    if crc32(body).to_le_bytes() != check {
        return Err(Wrong::Checksum);
    }
    Ok(())
}

fn half(bytes: &[u8]) -> u16 {
    u16::from(bytes[6]) | u16::from(bytes[7]) << 8
}

fn event(bytes: &[u8]) {
    let expected = expected(bytes, b"CUEV", 2, IpcEventDescriptor::LEN).and_then(|()| {
        let flags = half(bytes);
        if flags & !3 != 0 {
            return Err(Wrong::Field(flags & !3));
        }
        // An exporter without the flag that says so.
        let has_exporter = bytes[8..60].iter().any(|byte| *byte != 0);
        if has_exporter && flags & 2 == 0 { Err(Wrong::Checksum) } else { Ok(()) }
    });
    let read = IpcEventDescriptor::from_bytes(bytes);
    let found = match &read {
        Ok(_) => Ok(()),
        Err(error) => Err(match error {
            DescriptorError::Length { .. } => Wrong::Length,
            DescriptorError::Magic => Wrong::Magic,
            DescriptorError::Version { found, .. } => Wrong::Version(*found),
            DescriptorError::Checksum => Wrong::Checksum,
            DescriptorError::Flags { unknown } => Wrong::Field(*unknown),
            other => panic!("{other}"),
        }),
    };
    assert_eq!(found, expected);
    // As text and through serde the same is found.
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("cuev:{digits}");
    assert_eq!(text.parse::<IpcEventDescriptor>(), read);
    let json = format!("\"{text}\"");
    assert_eq!(serde_json::from_str::<IpcEventDescriptor>(&json).ok(), read.clone().ok());
    if let Ok(descriptor) = read {
        let written = descriptor.to_bytes();
        assert_eq!(written.as_slice(), bytes);
        assert_eq!(descriptor.to_string(), text);
        assert_eq!(
            serde_json::from_str::<IpcEventDescriptor>(
                &serde_json::to_string(&descriptor).expect("text")
            )
            .ok(),
            Some(descriptor)
        );
        let packed = postcard::to_allocvec(&descriptor).expect("bytes");
        assert_eq!(postcard::from_bytes(&packed), Ok(descriptor));
        let again =
            IpcEventDescriptor::from_raw(descriptor.to_raw(), descriptor.is_blocking_sync());
        assert_eq!(again.to_raw(), descriptor.to_raw());
        let _ = format!("{descriptor:?}");
    }
}

fn refusal<T>(read: &Result<T, cuda_timelines::Error>) -> Result<(), Wrong> {
    match read {
        Ok(_) => Ok(()),
        Err(cuda_timelines::Error::SharedTimeline(error)) => Err(match error {
            SharedTimelineError::DescriptorLength { .. } => Wrong::Length,
            SharedTimelineError::DescriptorMagic => Wrong::Magic,
            SharedTimelineError::DescriptorVersion { found, .. } => Wrong::Version(*found),
            SharedTimelineError::DescriptorChecksum => Wrong::Checksum,
            SharedTimelineError::NoSuchTimeline { index } => Wrong::Field(*index),
            other => panic!("{other}"),
        }),
        Err(other) => panic!("{other}"),
    }
}

fn place(bytes: &[u8], most: u16) -> Result<(), Wrong> {
    let place = half(bytes);
    if (1..=most).contains(&place) { Ok(()) } else { Err(Wrong::Field(place)) }
}

fn timeline(bytes: &[u8]) {
    let read = TimelineDescriptor::from_bytes(bytes);
    let in_memory = match bytes.len() {
        TimelineDescriptor::FILE_LEN => false,
        TimelineDescriptor::MEMORY_LEN => true,
        _ => bytes.starts_with(b"CUTH"),
    };
    let (magic, length, most) = if in_memory {
        (b"CUTH", TimelineDescriptor::MEMORY_LEN, 32_767)
    } else {
        (b"CUTL", TimelineDescriptor::FILE_LEN, 63)
    };
    let expected = expected(bytes, magic, 1, length).and_then(|()| place(bytes, most));
    assert_eq!(refusal(&read), expected);
    if let Ok(descriptor) = read {
        assert_eq!(descriptor.to_bytes().as_slice(), bytes);
        let origin = (descriptor.exporter_pid(), descriptor.device_uuid());
        let _ = format!("{descriptor:?} {origin:?}");
    }
}

/// The same bytes with what would stop a reader early made good.
fn sealed(bytes: &[u8], magic: &[u8; 4], version: u8, length: usize) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    sealed.resize(length, 0);
    sealed[..4].copy_from_slice(magic);
    sealed[4..6].copy_from_slice(&[version, 0]);
    let (body, check) = sealed.split_at_mut(length - 4);
    check.copy_from_slice(&crc32(body).to_le_bytes());
    sealed
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 8 {
        0 => event(bytes),
        1 | 2 => timeline(bytes),
        3 => event(&sealed(bytes, b"CUEV", 2, IpcEventDescriptor::LEN)),
        4 => timeline(&sealed(bytes, b"CUTL", 1, TimelineDescriptor::FILE_LEN)),
        5 => timeline(&sealed(bytes, b"CUTH", 1, TimelineDescriptor::MEMORY_LEN)),
        6 => {
            if let Ok(text) = std::str::from_utf8(bytes)
                && let Ok(descriptor) = text.parse::<IpcEventDescriptor>()
            {
                assert_eq!(descriptor.to_string().parse(), Ok(descriptor));
            }
            if let Ok(descriptor) = serde_json::from_slice::<IpcEventDescriptor>(bytes) {
                assert_eq!(descriptor.to_string().parse(), Ok(descriptor));
            }
        }
        _ => {
            if let Ok(descriptor) = postcard::from_bytes::<IpcEventDescriptor>(bytes) {
                assert_eq!(IpcEventDescriptor::from_bytes(&descriptor.to_bytes()), Ok(descriptor));
            }
        }
    }
});
