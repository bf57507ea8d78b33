//! What can be seen of a page as a picture or on paper.

use crate::Selector;

/// A picture that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shot {
    pub area: Area,
    pub format: ImageFormat,
    /// The longest side the picture may have; a larger one is scaled down as far as it stays readable, then cut.
    pub max_side: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    Viewport,
    /// The whole document, however long.
    FullPage,
    /// The first element that matches and can be seen.
    Element(Selector),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    Png,
    Jpeg { quality: u8 },
}

impl ImageFormat {
    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg { .. } => "image/jpeg",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// In base64, as the browser gives it and as clients want it.
    pub base64: String,
    pub format: ImageFormat,
    pub width: u32,
    pub height: u32,
    /// How much of the page or element is on it, of how much, in CSS pixels.
    pub shown: (u32, u32),
    pub whole: (u32, u32),
}

/// How a page is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Orientation {
    #[default]
    Portrait,
    Landscape,
}
