//! Takes a picture of the page: into the reply, small enough for every client, or into a file, as large as it is.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault, Touch};
use tabmux_driver::{Area, Image, ImageFormat, Shot};

use crate::act::selector;
use crate::arguments::{of_page, own_schema};
use crate::file::Target;
use crate::reply::{failed, sized};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, picture, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "screenshot",
    group: Group::See,
    level: Level::Core,
    description: "Take a picture of the page.",
    // It may write a file.
    effect: Effect::Write,
    own_schema: own_schema::<Screenshot>,
    run: Run::Page(&Take),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Screenshot {
    /// All of the page
    full_page: Option<bool>,
    /// Only this element
    selector: Option<String>,
    /// Absolute path (.png, .jpg): write full size there, show nothing
    file: Option<String>,
    /// Default: jpeg
    format: Option<Format>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Format {
    Png,
    Jpeg,
}

/// The longest side in a reply: models see no more, and over 2000 pixels a client may refuse the whole conversation.
const MAX_SIDE: u32 = 1568;

/// The largest picture in a reply; the whole reply must stay under 1 MiB.
const MAX_BASE64_BYTES: usize = 700_000;

const QUALITY: u8 = 80;

/// Where the first picture was too large.
const LOW_QUALITY: u8 = 50;

struct Take;

#[async_trait]
impl PageTool for Take {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Screenshot = of_page(&args)?;
        let target = args.file.as_deref().map(|file| Target::parse(file, &["png", "jpg", "jpeg"])).transpose()?;
        let format = format(args.format, target.as_ref())?;
        let area = area(args)?;
        let (tab, page) = cx.page().await?;
        let shoot = |shot: Shot| {
            let page = &page;
            async move { page.screenshot(&shot).await }
        };
        let Some(target) = target else {
            let image = small_enough(&area, format, shoot).await?;
            let text = format!(
                "{} of {}.{}",
                described(&image),
                visible::line(&page.url()),
                left_out(&image, "Give file for more, or selector for a part.")
            );
            let reply = Reply::text(text).about(tab, &page).with("width", image.width).with("height", image.height);
            return Ok(reply.image(image.base64, image.format.mime()));
        };
        let image = measured(shoot(Shot { area, format, max_side: None }).await.map_err(failed)?);
        let (what, less) = (described(&image), less_than_asked(&image));
        let bytes = target.write_base64(image.base64).await?;
        let text = format!("Saved {}: {what}, {}.{less}", target.shown(), sized(bytes));
        Ok(Reply::text(text).about(tab, &page).with("file", target.shown()).with("bytes", bytes))
    }

    fn touch(&self, args: &Arguments) -> Option<Touch> {
        Some(if args.get("file").is_none_or(serde_json::Value::is_null) { Touch::Looks } else { Touch::Acts })
    }
}

/// A file's name says its format; a reply is a JPEG, which is smaller, unless it was asked for.
fn format(asked: Option<Format>, target: Option<&Target>) -> Result<ImageFormat, Fault> {
    let named = target.map(|target| if target.ending == "png" { Format::Png } else { Format::Jpeg });
    match (named, asked) {
        (Some(named), Some(asked)) if named != asked => {
            Err(Fault::new(Code::BadArgument, "file and format say different things.", "Leave format away, or change the file's ending."))
        }
        (named, asked) => Ok(match named.or(asked).unwrap_or(Format::Jpeg) {
            Format::Png => ImageFormat::Png,
            Format::Jpeg => ImageFormat::Jpeg { quality: QUALITY },
        }),
    }
}

fn area(args: Screenshot) -> Result<Area, Fault> {
    match (args.full_page.unwrap_or_default(), args.selector) {
        (false, None) => Ok(Area::Viewport),
        (true, None) => Ok(Area::FullPage),
        (false, Some(source)) => Ok(Area::Element(selector(&source)?)),
        (true, Some(_)) => Err(Fault::new(Code::BadArgument, "fullPage and selector exclude each other.", "Give only one of them.")),
    }
}

/// A picture for a reply: as asked for, else once more at half the side and with less quality.
async fn small_enough<F>(area: &Area, format: ImageFormat, shoot: impl Fn(Shot) -> F) -> Result<Image, Fault>
where
    F: Future<Output = tabmux_driver::Result<Image>>,
{
    for (format, side) in [(format, MAX_SIDE), (ImageFormat::Jpeg { quality: LOW_QUALITY }, MAX_SIDE / 2)] {
        let image = measured(shoot(Shot { area: area.clone(), format, max_side: Some(side) }).await.map_err(failed)?);
        if image.width.max(image.height) <= MAX_SIDE && image.base64.len() < MAX_BASE64_BYTES {
            return Ok(image);
        }
    }
    Err(Fault::new(Code::FrameTooLarge, "The picture is too large for a reply.", "Give file to write it there, or a selector for a part."))
}

/// The picture with its real size, as far as its header says.
fn measured(image: Image) -> Image {
    let (width, height) = picture::pixels(&image.base64).unwrap_or((image.width, image.height));
    Image { width, height, ..image }
}

fn described(image: &Image) -> String {
    let format = match image.format {
        ImageFormat::Png => "png",
        ImageFormat::Jpeg { .. } => "jpeg",
    };
    format!("{}×{} {format}", image.width, image.height)
}

/// What a file has not of the full size that was asked for: a browser draws only so much at once.
fn less_than_asked(image: &Image) -> String {
    const HINT: &str = "Give selector for a part, or use pdf.";
    let cut = left_out(image, HINT);
    if image.width >= image.shown.0 && image.height >= image.shown.1 {
        return cut;
    }
    let percent = f64::from(image.width.max(image.height)) / f64::from(image.shown.0.max(image.shown.1)) * 100.0;
    let scaled = format!(" Scaled to {percent:.0} %: the browser draws no larger at once.");
    if cut.is_empty() { format!("{scaled} {HINT}") } else { scaled + &cut }
}

/// What is not on the picture, because it would be too small to read.
fn left_out(image: &Image, hint: &str) -> String {
    let (shown, whole) = (image.shown, image.whole);
    let mut parts = Vec::new();
    if shown.1 < whole.1 {
        parts.push(format!("the top {} of {} px", shown.1, whole.1));
    }
    if shown.0 < whole.0 {
        parts.push(format!("the left {} of {} px", shown.0, whole.0));
    }
    if parts.is_empty() { String::new() } else { format!(" Only {}. {hint}", parts.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;
    use crate::Content;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_picture_comes_with_one_line_of_text() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        for (format, mime, told) in [(json!(null), "image/jpeg", "jpeg"), (json!("png"), "image/png", "png")] {
            let reply = pages.call("screenshot", json!({ "fullPage": true, "format": format })).await.unwrap();
            let [Content::Text(text), Content::Image { base64, mime: given }] = &reply.content[..] else { panic!("{reply:?}") };
            assert_eq!((text.as_str(), *given), (format!("1×1 {told} of http://a.test/.").as_str(), mime));
            assert_eq!(picture::pixels(base64), Some((1, 1)));
            assert_eq!((&reply.result["tabId"], &reply.result["width"]), (&json!("t1"), &json!(1)));
        }
    }

    #[tokio::test]
    async fn with_a_file_the_picture_is_written_there_in_the_format_of_its_name() {
        let (pages, home) = (TestPages::new().await, tempfile::tempdir().unwrap());
        for (name, start) in [("a.png", b"\x89PNG".as_slice()), ("b.jpg", b"\xff\xd8\xff"), ("c.JPEG", b"\xff\xd8\xff")] {
            let file = home.path().join(name);
            let reply = pages.call("screenshot", json!({ "file": file })).await.unwrap();
            let bytes = std::fs::read(&file).unwrap();
            assert!(bytes.starts_with(start), "{name}");
            let told = if name == "a.png" { "png" } else { "jpeg" };
            assert_eq!(text(&reply), format!("Saved {}: 1×1 {told}, {} B.", file.display(), bytes.len()));
            assert_eq!(reply.result["bytes"], json!(bytes.len()));
        }
    }

    #[test]
    fn a_file_that_is_smaller_than_the_page_says_so() {
        let image = |width, height, shown, whole| Image { base64: String::new(), format: ImageFormat::Png, width, height, shown, whole };
        assert_eq!(less_than_asked(&image(1280, 720, (1280, 720), (1280, 720))), "");
        assert_eq!(less_than_asked(&image(2560, 1440, (1280, 720), (1280, 720))), "");
        assert_eq!(
            less_than_asked(&image(16384, 393, (30008, 720), (30008, 720))),
            " Scaled to 55 %: the browser draws no larger at once. Give selector for a part, or use pdf."
        );
        assert_eq!(
            less_than_asked(&image(640, 16384, (1280, 32768), (1280, 40000))),
            " Scaled to 50 %: the browser draws no larger at once. Only the top 32768 of 40000 px. Give selector for a part, or use pdf."
        );
    }

    #[tokio::test]
    async fn what_cannot_be_is_refused_before_anything_is_written() {
        let (pages, home) = (TestPages::new().await, tempfile::tempdir().unwrap());
        let file = home.path().join("a.png");
        for (args, code) in [
            (json!({ "selector": "#no", "file": file }), Code::ElementNotFound),
            (json!({ "selector": "#no", "fullPage": true, "file": file }), Code::BadArgument),
            (json!({ "format": "jpeg", "file": file }), Code::BadArgument),
            (json!({ "format": "gif" }), Code::BadArgument),
            (json!({ "file": "a.png" }), Code::BadArgument),
        ] {
            assert_eq!(pages.call("screenshot", args.clone()).await.unwrap_err().code, code, "{args}");
        }
        assert!(!file.exists());
        let fault = pages.call("screenshot", json!({ "selector": "#no" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @r##"[element_not_found] No element matches "#no". Look at the page again, then give another selector."##);
    }

    #[test]
    fn what_was_cut_off_is_said() {
        let image = |shown, whole| Image { base64: String::new(), format: ImageFormat::Png, width: 1, height: 1, shown, whole };
        assert_eq!(left_out(&image((640, 400), (640, 400)), "More."), "");
        assert_eq!(left_out(&image((1280, 3136), (1280, 20_000)), "More."), " Only the top 3136 of 20000 px. More.");
        assert_eq!(left_out(&image((9, 8), (90, 80)), "More."), " Only the top 8 of 80 px and the left 9 of 90 px. More.");
    }

    /// A picture of `bytes` bytes and `side` pixels each way at full size, smaller as far as the shot asks for it.
    async fn drawn(bytes: usize, side: u32) -> (Result<Image, Fault>, Vec<Shot>) {
        let shots = Mutex::new(Vec::new());
        let image = small_enough(&Area::Viewport, ImageFormat::Png, |shot| {
            let halved = usize::from(shot.max_side == Some(MAX_SIDE / 2)) + 1;
            let side = side / halved as u32;
            let image =
                Image { base64: "A".repeat(bytes / halved), format: shot.format, width: side, height: 1, shown: (1, 1), whole: (1, 1) };
            shots.lock().unwrap().push(shot);
            async move { Ok(image) }
        });
        let image = image.await;
        (image, shots.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_picture_that_is_too_large_is_taken_again_smaller_and_never_sent_too_large() {
        let (image, shots) = drawn(MAX_BASE64_BYTES - 1, MAX_SIDE).await;
        assert_eq!((image.unwrap().format, shots.len()), (ImageFormat::Png, 1));
        for (bytes, side) in [(MAX_BASE64_BYTES, MAX_SIDE), (10, MAX_SIDE + 1)] {
            let (image, shots) = drawn(bytes, side).await;
            let smaller = Shot { area: Area::Viewport, format: ImageFormat::Jpeg { quality: LOW_QUALITY }, max_side: Some(784) };
            assert_eq!((image.unwrap().format, &shots[1..]), (smaller.format, &[smaller][..]));
        }
        for (bytes, side) in [(2 * MAX_BASE64_BYTES, 1), (10, 2 * MAX_SIDE + 2)] {
            let (image, shots) = drawn(bytes, side).await;
            assert_eq!((image.unwrap_err().code, shots.len()), (Code::FrameTooLarge, 2));
        }
    }
}
