//! Cubins and fat binaries. Other crates' tests use this file, too.

// Not each of them uses all of it.
#![allow(dead_code)]

/// A kernel's name, its code, and its parameters by offset and size.
pub type Described<'a> = (&'a str, &'a [u8], &'a [(u16, u32)]);

/// A cubin with `kernels`.
pub fn cubin(flags: u32, abi: u8, kernels: &[Described<'_>]) -> Vec<u8> {
    cubin_with(flags, abi, kernels, &[])
}

/// The same with more sections.
pub fn cubin_with(
    flags: u32,
    abi: u8,
    kernels: &[Described<'_>],
    more: &[(&str, &[u8])],
) -> Vec<u8> {
    cubin_of(flags, abi, kernels, more, &[])
}

/// The same with more attributes of each kernel.
pub fn cubin_of(
    flags: u32,
    abi: u8,
    kernels: &[Described<'_>],
    more: &[(&str, &[u8])],
    attributes: &[u8],
) -> Vec<u8> {
    let mut names = vec![0];
    let mut name = |text: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(text.as_bytes());
        names.push(0);
        at
    };
    let mut sections = vec![(0, 0, Vec::new())];
    for &(kernel, code, parameters) in kernels {
        sections.push((name(&format!(".text.{kernel}")), 1, code.to_vec()));
        // One attribute with two bytes, then the bank, then the parameters from the last.
        let mut info = vec![3, 0x1b, 255, 0];
        let size =
            parameters.iter().map(|&(offset, size)| u32::from(offset) + size).max().unwrap_or(0)
                as u16;
        info.extend([4, 0x0a, 8, 0, 1, 0, 0, 0, 0x10, 2]);
        info.extend(size.to_le_bytes());
        for (ordinal, &(offset, size)) in parameters.iter().enumerate().rev() {
            info.extend([4, 0x17, 12, 0, 0, 0, 0, 0]);
            info.extend((ordinal as u16).to_le_bytes());
            info.extend(offset.to_le_bytes());
            info.extend((size << 18 | 0x1f000).to_le_bytes());
        }
        info.extend(attributes);
        sections.push((name(&format!(".nv.info.{kernel}")), 0x7000_0000, info));
    }
    for (section, bytes) in more {
        sections.push((name(section), 1, bytes.to_vec()));
    }
    let last = name(".shstrtab");
    sections.push((last, 3, names));
    let mut file = vec![0; 64];
    let mut headers = Vec::new();
    for (name, kind, bytes) in &sections {
        file.resize(file.len().next_multiple_of(16), 0);
        let mut header = [0; 64];
        header[..4].copy_from_slice(&u32::to_le_bytes(*name));
        header[4..8].copy_from_slice(&u32::to_le_bytes(*kind));
        header[0x18..0x20].copy_from_slice(&(file.len() as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        headers.extend(header);
        file.extend(bytes);
    }
    file.resize(file.len().next_multiple_of(16), 0);
    let at = file.len() as u64;
    file.extend(headers);
    // One segment, whose header is the file's last part.
    let segments = file.len() as u64;
    file.extend([0; 56]);
    file[..4].copy_from_slice(b"\x7fELF");
    file[4..9].copy_from_slice(&[2, 1, 1, 0x33, abi]);
    file[18..20].copy_from_slice(&190u16.to_le_bytes());
    file[0x20..0x28].copy_from_slice(&segments.to_le_bytes());
    file[0x28..0x30].copy_from_slice(&at.to_le_bytes());
    file[0x30..0x34].copy_from_slice(&flags.to_le_bytes());
    file[0x36..0x38].copy_from_slice(&56u16.to_le_bytes());
    file[0x38..0x3a].copy_from_slice(&1u16.to_le_bytes());
    file[0x3a..0x3c].copy_from_slice(&64u16.to_le_bytes());
    file[0x3c..0x3e].copy_from_slice(&(sections.len() as u16).to_le_bytes());
    file[0x3e..0x40].copy_from_slice(&(sections.len() as u16 - 1).to_le_bytes());
    file
}

/// The flags of an entry that is not compressed.
pub const PLAIN: u64 = 0x11;

/// An entry of a fat binary: `header` is the length of its header, `bytes` those before compression.
pub struct Packed {
    pub kind: u16,
    pub architecture: u32,
    pub flags: u64,
    pub header: u32,
    pub packed: Vec<u8>,
    pub bytes: usize,
}

pub fn packed_fatbin(entries: &[Packed]) -> Vec<u8> {
    let mut body = Vec::new();
    for &Packed { kind, architecture, flags, header, ref packed, bytes } in entries {
        let padded = packed.len().next_multiple_of(8);
        let start = body.len();
        body.resize(start + header as usize, 0);
        let mut put = |at: usize, bytes: &[u8]| {
            body[start + at..start + at + bytes.len()].copy_from_slice(bytes)
        };
        put(0, &kind.to_le_bytes());
        put(4, &header.to_le_bytes());
        put(8, &(padded as u64).to_le_bytes());
        if flags != PLAIN {
            put(16, &(packed.len() as u32).to_le_bytes());
            put(56, &(bytes as u64).to_le_bytes());
        }
        put(28, &architecture.to_le_bytes());
        put(40, &flags.to_le_bytes());
        body.extend(packed);
        body.resize(start + header as usize + padded, 0);
    }
    let mut file = 0xba55_ed50_u32.to_le_bytes().to_vec();
    file.extend([1, 0, 16, 0]);
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    file
}
