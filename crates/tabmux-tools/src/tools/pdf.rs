//! Prints the page into a PDF file.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Orientation;

use crate::arguments::{of_page, own_schema};
use crate::file::Target;
use crate::reply::{failed, sized};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "pdf",
    group: Group::State,
    level: Level::Full,
    description: "Print the page to a PDF file.",
    effect: Effect::Write,
    own_schema: own_schema::<Pdf>,
    run: Run::Page(&Print),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pdf {
    /// Absolute path (.pdf)
    file: String,
    /// Paper on its side
    landscape: Option<bool>,
}

struct Print;

#[async_trait]
impl PageTool for Print {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Pdf = of_page(&args)?;
        let target = Target::parse(&args.file, &["pdf"])?;
        let orientation = if args.landscape.unwrap_or_default() { Orientation::Landscape } else { Orientation::Portrait };
        let (tab, page) = cx.page().await?;
        let bytes = target.write_base64(page.pdf(orientation).await.map_err(failed)?).await?;
        let text = format!("Saved {}: {}.", target.shown(), sized(bytes));
        Ok(Reply::text(text).about(tab, &page).with("file", target.shown()).with("bytes", bytes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_page_is_printed_into_the_file() {
        let (pages, home) = (TestPages::new().await, tempfile::tempdir().unwrap());
        let file = home.path().join("a.pdf");
        let reply = pages.call("pdf", json!({ "file": file, "landscape": true })).await.unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert!(bytes.starts_with(b"%PDF"));
        assert_eq!(text(&reply), format!("Saved {}: {} B.", file.display(), bytes.len()));
    }

    #[tokio::test]
    async fn a_file_is_needed_and_must_be_a_pdf() {
        let pages = TestPages::new().await;
        let fault = pages.call("pdf", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] Argument file is missing. Give file: a string.");
        for file in ["a.pdf", "/tmp/a.png"] {
            assert_eq!(pages.call("pdf", json!({ "file": file })).await.unwrap_err().code, Code::BadArgument);
        }
    }
}
