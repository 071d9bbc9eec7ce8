//! The names and texts of the result codes.

use core::ffi::CStr;

use crate::abi::{CUresult, RESULT_CODES};

/// Name and text of a code.
pub(crate) fn find(code: CUresult) -> Option<(&'static CStr, &'static CStr)> {
    let at = RESULT_CODES.iter().position(|(listed, _)| *listed == code)?;
    Some((RESULT_CODES[at].1, CStr::from_bytes_until_nul(&TEXTS[at]).ok()?))
}

/// The version that the code came with, of those that came late: what is older does not know it.
pub(crate) fn since(code: CUresult) -> i32 {
    match code.0 {
        811 | 812 => 12000,
        225 | 402 | 913..=915 => 12040,
        226 | 721 | 916 => 12080,
        36 => 13000,
        917 => 13010,
        918 => 13030,
        47 | 227 | 919 => 13040,
        _ => 0,
    }
}

/// A code by its number or name.
pub(crate) fn parse(text: &str) -> Result<CUresult, String> {
    let named = || {
        RESULT_CODES
            .iter()
            .find(|(_, name)| name.to_bytes() == text.as_bytes())
            .map(|(code, _)| *code)
    };
    text.parse().ok().map(CUresult).or_else(named).ok_or_else(|| {
        format!(
            "`{text}` is not a result code: use a number like 2 or a name like \
             CUDA_ERROR_OUT_OF_MEMORY"
        )
    })
}

/// Room for the longest text and its terminator.
const ROOM: usize = 64;

/// The texts in the order of the codes. They are made before the program runs: it may ask for one
/// in a forked child, where nothing may be locked.
static TEXTS: [[u8; ROOM]; RESULT_CODES.len()] = {
    let mut texts = [[0; ROOM]; RESULT_CODES.len()];
    let mut at = 0;
    while at < texts.len() {
        texts[at] = text(RESULT_CODES[at].1);
        at += 1;
    }
    texts
};

/// The text of a code is its name in plain words: `invalid handle` for `CUDA_ERROR_INVALID_HANDLE`.
const fn text(name: &CStr) -> [u8; ROOM] {
    let (words, start) = match name.to_bytes() {
        b"CUDA_SUCCESS" => (b"no error".as_slice(), 0),
        name => (name, "CUDA_ERROR_".len()),
    };
    let mut text = [0; ROOM];
    let mut at = start;
    while at < words.len() {
        text[at - start] = if words[at] == b'_' { b' ' } else { words[at].to_ascii_lowercase() };
        at += 1;
    }
    assert!(text[ROOM - 1] == 0, "the text ends with a terminator");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_name_and_a_text_of_its_own() {
        let text =
            |code| find(code).map(|(name, text)| (name.to_str().unwrap(), text.to_str().unwrap()));
        assert_eq!(text(CUresult::CUDA_SUCCESS), Some(("CUDA_SUCCESS", "no error")));
        assert_eq!(
            text(CUresult(914)),
            Some(("CUDA_ERROR_INVALID_RESOURCE_TYPE", "invalid resource type"))
        );
        assert_eq!(text(CUresult(4242)), None);
        let texts: std::collections::HashSet<_> =
            RESULT_CODES.iter().map(|(code, _)| find(*code).unwrap().1).collect();
        assert_eq!(texts.len(), RESULT_CODES.len());
        assert!(texts.iter().all(|text| !text.is_empty()));
    }
}
