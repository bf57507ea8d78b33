//! What the page says, in all its frames.

use futures::future::join_all;
use tabmux_driver::Result;

use super::CdpPage;
use super::script::failed;

impl CdpPage {
    pub(super) async fn whole_text(&self) -> Result<String> {
        let main: String = self.script("text", &()).await.map_err(failed)?;
        let strangers = self.state.frames().strangers(&self.handle.0);
        let others = join_all(strangers.iter().map(|frame| self.script_in::<String>(frame, "text", &()))).await;
        // A frame that goes meanwhile has nothing to say.
        let texts = [main].into_iter().chain(others.into_iter().flatten()).filter(|text| !text.trim().is_empty());
        Ok(texts.collect::<Vec<_>>().join("\n\n"))
    }
}
