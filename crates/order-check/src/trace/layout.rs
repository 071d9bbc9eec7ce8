//! The frames of CPython 3.13 and 3.14, which describe at the begin of `_PyRuntime` where the
//! fields of their structures are.

use core::ffi::c_int;

use super::FRAMES;

/// The interpreter's function that gives a frame's line.
pub(super) type Line = unsafe extern "C" fn(usize) -> c_int;

/// Where the fields of CPython's structures are.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    current_frame: usize,
    previous: usize,
    executable: usize,
    owner: usize,
    filename: usize,
    name: usize,
    state: usize,
    length: usize,
    ascii: usize,
}

/// The words of the description that [`Layout`] has, in the order of its fields.
type Words = [usize; 9];

const IN_3_13: Words = [23, 29, 30, 33, 35, 36, 68, 69, 70];
const IN_3_14: Words = [26, 32, 33, 36, 40, 41, 78, 79, 80];

/// From this owner on a frame is the interpreter's own, and has no code.
const WITHOUT_CODE: u8 = 3;

impl Layout {
    /// The layout that the begin of `_PyRuntime` describes. There is none for other versions, for
    /// versions before a release, and without the global lock.
    ///
    /// # Safety
    ///
    /// The address of `_PyRuntime`, which is larger than 81 words from version 3.13 on.
    pub(super) unsafe fn read(runtime: *const u64) -> Option<Self> {
        // SAFETY: as the caller says; the first word tells whether there are more.
        let word = |at: usize| unsafe { runtime.add(at).read() };
        if word(0).to_le_bytes() != *b"xdebugpy" || word(2) != 0 {
            return None;
        }
        // The number of the version is PY_VERSION_HEX. Its last byte is 0xc0 and more for
        // candidates and releases, whose layout is final.
        let words = match (word(1) >> 16, word(1) & 0xff >= 0xc0) {
            (0x030d, true) => IN_3_13,
            (0x030e, true) => IN_3_14,
            _ => return None,
        };
        let [current_frame, previous, executable, owner, filename, name, state, length, ascii] =
            words.map(|at| usize::try_from(word(at)).unwrap_or(0));
        Some(Self {
            current_frame,
            previous,
            executable,
            owner,
            filename,
            name,
            state,
            length,
            ascii,
        })
    }

    /// The text of a string of Python.
    ///
    /// # Safety
    ///
    /// The address of such a string.
    unsafe fn text(&self, string: usize) -> String {
        let place = |offset: usize| core::ptr::with_exposed_provenance::<u8>(string + offset);
        // SAFETY: the fields of the string: the bits 2 to 4 of the state are the bytes of a
        // letter, the bit 6 says that all are ASCII. They lie after the fields, of which
        // others than ASCII have two more.
        unsafe {
            let state = place(self.state).cast::<u32>().read();
            let length = place(self.length).cast::<usize>().read().min(500);
            let first = place(self.ascii + if state >> 6 & 1 == 1 { 0 } else { 16 });
            let letter = |at: usize| match state >> 2 & 7 {
                1 => u32::from(first.add(at).read()),
                2 => u32::from(first.cast::<u16>().add(at).read()),
                _ => first.cast::<u32>().add(at).read(),
            };
            (0..length).map(|at| char::from_u32(letter(at)).unwrap_or('?')).collect()
        }
    }

    /// The stack of this thread, as other versions print it.
    ///
    /// # Safety
    ///
    /// This thread's state, and the function that gives a frame's line.
    pub(super) unsafe fn stack(&self, state: usize, line: Line) -> String {
        // SAFETY: fields of structures of the interpreter.
        let word =
            |address: usize| unsafe { core::ptr::with_exposed_provenance::<usize>(address).read() };
        let mut text = String::new();
        let mut frame = word(state + self.current_frame);
        for _ in 0..4 * FRAMES {
            if frame == 0 {
                break;
            }
            // SAFETY: as above.
            let owner =
                unsafe { core::ptr::with_exposed_provenance::<u8>(frame + self.owner).read() };
            if owner < WITHOUT_CODE {
                // In 3.14 the lowest bit says that the frame does not count as a user of the code.
                let code = word(frame + self.executable) & !1;
                // SAFETY: the code's two strings, and a frame with code.
                let (file, name, line) = unsafe {
                    let file = self.text(word(code + self.filename));
                    (file, self.text(word(code + self.name)), line(frame))
                };
                text += &format!("  File \"{file}\", line {line} in {name}\n");
            }
            frame = word(frame + self.previous);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_int;

    use super::{IN_3_13, IN_3_14, Layout, WITHOUT_CODE, Words};

    /// A description of made-up structures: each field is a word of its own, in another order.
    const FIELDS: [u64; 9] = [16, 0, 8, 24, 40, 32, 0, 8, 16];

    fn described(version: u64, words: Words) -> [u64; 90] {
        // What is not a field that is read is no address.
        let mut runtime = [u64::MAX; 90];
        [runtime[0], runtime[1], runtime[2]] = [u64::from_le_bytes(*b"xdebugpy"), version, 0];
        for (at, field) in words.into_iter().zip(FIELDS) {
            runtime[at] = field;
        }
        runtime
    }

    fn layout(runtime: &[u64; 90]) -> Option<Layout> {
        // SAFETY: it has more than 81 words.
        unsafe { Layout::read(runtime.as_ptr()) }
    }

    /// A string in memory: letters of so many bytes each.
    fn string(text: &str, bytes: u32) -> Vec<u64> {
        let ascii = text.is_ascii() && bytes == 1;
        let letters: Vec<u8> = text
            .chars()
            .flat_map(|letter| u32::from(letter).to_le_bytes()[..bytes as usize].to_vec())
            .collect();
        let state = u64::from(bytes << 2 | u32::from(ascii) << 6 | 1 << 5 | 2);
        let mut words = vec![state, text.chars().count() as u64];
        words.extend(if ascii { vec![] } else { vec![u64::MAX; 2] });
        words.extend(letters.chunks(8).map(|chunk| {
            let mut word = [0xff; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        words
    }

    fn address(words: &[u64]) -> u64 {
        words.as_ptr().expose_provenance() as u64
    }

    unsafe extern "C" fn line(frame: usize) -> c_int {
        // SAFETY: a frame of the tests has its line in its fifth word.
        unsafe { core::ptr::with_exposed_provenance::<c_int>(frame + 32).read() }
    }

    #[test]
    fn a_stack_has_the_frames_with_code_from_the_inside() {
        for (version, words) in [(0x030d_00f0, IN_3_13), (0x030e_08f0, IN_3_14)] {
            let strings = [
                string("game.py", 1),
                string("upload", 1),
                string("größe.py", 1),
                string("\u{3b1}", 2),
                string("\u{1f600}.py", 4),
                string("<module>", 1),
            ];
            let [inner, middle, outer] = [0, 2, 4].map(|at| {
                let mut code = [u64::MAX; 6];
                [code[5], code[4]] = [address(&strings[at]), address(&strings[at + 1])];
                code
            });
            // The interpreter's own frames have no code; the others are of three kinds.
            let own = |owner: u8| [0, u64::MAX, u64::MAX, owner.into(), 0];
            let mut frames = [
                own(WITHOUT_CODE + 1),
                [0, address(&inner), u64::MAX, 0, 7],
                own(WITHOUT_CODE),
                [0, address(&middle) | u64::from(version >= 0x030e_0000), u64::MAX, 1, 12],
                [0, address(&outer), u64::MAX, 2, 30],
            ];
            for at in (1..frames.len()).rev() {
                frames[at - 1][0] = address(&frames[at]);
            }
            let thread = [u64::MAX, u64::MAX, address(&frames[0])];
            let layout = layout(&described(version, words)).expect("a version that is known");
            // SAFETY: structures as the description says.
            let text = unsafe { layout.stack(thread.as_ptr().expose_provenance(), line) };
            assert_eq!(
                text,
                "  File \"game.py\", line 7 in upload\n  File \"größe.py\", line 12 in \u{3b1}\n  \
                 File \"\u{1f600}.py\", line 30 in <module>\n"
            );
        }
    }

    #[test]
    fn other_versions_have_no_layout() {
        for version in [0x030c_00f0, 0x030f_00f0, 0x030e_00a7, 0x030e_00b4, 0x040d_00f0] {
            assert!(layout(&described(version, IN_3_14)).is_none(), "{version:#x}");
        }
        assert!(layout(&described(0x030e_00c1, IN_3_14)).is_some());
        // Without the global lock, and where there is no description.
        for (at, value) in [(2, 1), (0, 0)] {
            let mut runtime = described(0x030d_01f0, IN_3_13);
            runtime[at] = value;
            assert!(layout(&runtime).is_none(), "{at}");
        }
    }
}
