//! The IPC descriptor as text, and through serde (feature `serde`).

use cuda_events::IpcEventDescriptor;
use cuda_events::ipc::DescriptorError;

fn descriptor() -> IpcEventDescriptor {
    let mut handle = [0; 64];
    for (place, value) in handle.iter_mut().zip(7_u8..) {
        *place = value.wrapping_mul(37);
    }
    IpcEventDescriptor::from_raw(handle, true)
}

#[test]
fn it_survives_as_one_line() {
    let text = descriptor().to_string();
    assert_eq!(text.len(), 261);
    assert!(text.starts_with("cuev:435545560200"), "{text}");
    assert!(
        text.bytes().all(|byte| byte.is_ascii_graphic()),
        "nothing that a shell or an environment could change"
    );
    assert_eq!(text.parse(), Ok(descriptor()));
    assert_eq!(format!("  {text}\r\n").parse(), Ok(descriptor()));
    assert_eq!(text.to_uppercase().replace("CUEV:", "cuev:").parse(), Ok(descriptor()));
}

#[test]
fn bytes_that_are_no_descriptor_have_a_cause() {
    let text = descriptor().to_string();
    let refused = |text: &str, error| {
        assert_eq!(text.parse::<IpcEventDescriptor>(), Err(error), "{text:?}");
    };
    for other in ["", "cuev", "deadbeef", &text[5..], "cuew:00"] {
        refused(other, DescriptorError::Magic);
    }
    refused(&text[..text.len() - 1], DescriptorError::Text);
    // The digits of a byte begin at odd places: what is put at an even one is the end of one byte
    // and the begin of the next. A sign or a space before a digit is what some readers of numbers
    // let pass.
    for bad in ["g0", "0g", "+1", "-1", "1+", " 1", "1 ", "_1", "é", "0x", "x1"] {
        for at in 5..=text.len() - bad.len() {
            let (before, after) = (&text[..at], &text[at + bad.len()..]);
            // White space around the text is not of it.
            let length = format!("{before}{bad}{after}").trim().len();
            if length == text.len() {
                refused(&format!("{before}{bad}{after}"), DescriptorError::Text);
            }
        }
    }
    refused(&text[..text.len() - 2], DescriptorError::Length { found: 127, expected: 128 });
    refused(&format!("{text}00"), DescriptorError::Length { found: 129, expected: 128 });
    refused("cuev:", DescriptorError::Length { found: 0, expected: 128 });
    // Every digit matters.
    for at in 5..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] = if damaged[at] == b'0' { b'1' } else { b'0' };
        let damaged = String::from_utf8(damaged).expect("digits");
        assert!(damaged.parse::<IpcEventDescriptor>().is_err(), "{at}");
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::{IpcEventDescriptor, descriptor};

    /// A format may give the bytes one after the other.
    #[test]
    fn a_sequence_of_bytes_is_a_descriptor() {
        use ::serde::Deserialize;
        use ::serde::de::value::{Error, SeqDeserializer};

        let bytes = descriptor().to_bytes();
        let read = |bytes: &[u8]| {
            IpcEventDescriptor::deserialize(SeqDeserializer::<_, Error>::new(bytes.iter().copied()))
        };
        assert_eq!(read(&bytes), Ok(descriptor()));
        for wrong in [&bytes[..127], &[bytes.as_slice(), &[0]].concat(), &[]] {
            assert!(read(wrong).is_err(), "{} bytes", wrong.len());
        }
    }

    #[test]
    fn text_formats_have_the_line() {
        let json = serde_json::to_string(&descriptor()).expect("it serializes");
        assert_eq!(json, format!("\"{}\"", descriptor()));
        assert_eq!(
            serde_json::from_str::<IpcEventDescriptor>(&json).expect("it comes back"),
            descriptor()
        );
        let error =
            serde_json::from_str::<IpcEventDescriptor>("\"cuev:00\"").expect_err("it is too short");
        assert!(error.to_string().contains("it has 1 bytes, not 128"), "{error}");
        let error = serde_json::from_str::<IpcEventDescriptor>("7").expect_err("it is a number");
        assert!(error.to_string().contains("an IPC event descriptor"), "{error}");
    }

    #[test]
    fn binary_formats_have_the_bytes() {
        let bytes = rmp_serde::to_vec(&descriptor()).expect("it serializes");
        assert!(bytes.ends_with(&descriptor().to_bytes()));
        assert_eq!(bytes.len(), 130, "the bytes, their type and their length");
        assert_eq!(
            rmp_serde::from_slice::<IpcEventDescriptor>(&bytes).expect("it comes back"),
            descriptor()
        );
        let mut damaged = bytes.clone();
        damaged[50] ^= 1;
        rmp_serde::from_slice::<IpcEventDescriptor>(&damaged).expect_err("it was damaged");
    }
}
