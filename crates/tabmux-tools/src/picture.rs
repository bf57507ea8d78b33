//! How large a picture really is, read from its own header: on a dense screen a browser may draw twice the pixels it was
//! asked for, and one picture that is too large spoils a whole conversation. Decoding pictures is deliberately absent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// As much of the picture as is looked at, in base64; a multiple of four. Profiles before a JPEG's size can be long.
const LOOKED_AT: usize = 128 * 1024;

/// Width and height in pixels, if the header says.
pub(crate) fn pixels(base64: &str) -> Option<(u32, u32)> {
    let start = STANDARD.decode(base64.get(..LOOKED_AT).unwrap_or(base64)).ok()?;
    if start.starts_with(b"\x89PNG") { of_png(&start) } else { of_jpeg(&start) }
}

/// The size stands in the first chunk (PNG 1.2, 4.1.1).
fn of_png(bytes: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    Some((side(16)?, side(20)?))
}

/// The size stands in the frame header, SOF0 to SOF15 (ITU T.81, B.2.2); segments before it are skipped by their length.
fn of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    while bytes.get(at) == Some(&0xff) {
        let marker = *bytes.get(at + 1)?;
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            return Some((word(at + 7)?.into(), word(at + 5)?.into()));
        }
        at += 2 + usize::from(word(at + 2)?);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_the_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x06\x20\0\0\x03\x72".as_slice();
        assert_eq!(pixels(&STANDARD.encode(png)), Some((1568, 882)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc4\0\x02\xff\xc2\0\x0b\x08\x03\x72\x06\x20\x03".as_slice();
        assert_eq!(pixels(&STANDARD.encode(jpeg)), Some((1568, 882)));
    }

    #[test]
    fn what_is_cut_or_no_picture_has_no_size() {
        for bytes in [b"".as_slice(), b"\x89PNG", b"\xff\xd8", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0\xff\xff", b"GIF89a"] {
            assert_eq!(pixels(&STANDARD.encode(bytes)), None);
        }
        assert_eq!(pixels("no base64"), None);
    }
}
