//! The driver's contract on real Chromium.

use std::sync::Arc;

use async_trait::async_trait;
use tabmux_cdp::CdpBrowser;
use tabmux_driver::{Adopted, Browser, BrowserInfo, Context, ContextSpec, Handle, Isolation, PageRecord, Result};

use crate::support;

async fn start() -> (Arc<dyn Browser>, String) {
    (support::chromium().await, support::site(|path| format!("<p>The page at {path}.")).await)
}

tabmux_driver::contract_tests!(start().await);

/// A browser whose contexts are all isolated by window.
#[derive(Debug)]
struct InWindows(Arc<CdpBrowser>);

#[async_trait]
impl Browser for InWindows {
    fn info(&self) -> BrowserInfo {
        self.0.info()
    }

    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        self.0.open_context(&ContextSpec { isolation: Isolation::Window, ..spec.clone() }).await
    }

    async fn adopt_context(&self, context: &Handle, spec: &ContextSpec, pages: &[PageRecord]) -> Result<Adopted> {
        self.0.adopt_context(context, spec, pages).await
    }

    async fn keep_only(&self, contexts: &[Handle]) -> Result<usize> {
        self.0.keep_only(contexts).await
    }

    async fn contexts(&self) -> Result<usize> {
        self.0.contexts().await
    }

    async fn shut_door(&self, endpoint: &str) -> Result<()> {
        self.0.shut_door(endpoint).await
    }

    async fn gone(&self) -> String {
        self.0.gone().await
    }

    async fn end(&self) -> Result<()> {
        self.0.end().await
    }
}

/// S4.1: what every driver keeps holds for windows too, but for what they share on purpose: the profile with its cookies,
/// which is not tidied up either.
mod windows {
    use super::*;

    async fn start() -> (Arc<dyn Browser>, String) {
        let site = support::site(|path| format!("<p>The page at {path}.")).await;
        (Arc::new(InWindows(support::full_chromium(None).await)), site)
    }

    tabmux_driver::contract_tests!(start().await;
        a_new_page_is_blank_and_handles_differ
        a_page_goes_where_it_is_sent
        history_goes_back_and_forward_and_no_further
        a_failed_navigation_says_why_and_the_page_lives_on
        pages_of_one_context_share_its_cookies
        a_script_that_throws_fails_with_its_text
        a_hanging_script_delays_no_other_page
        a_script_given_up_leaves_its_page_usable
        closing_never_waits_for_a_hanging_script
        closing_a_context_closes_its_pages_and_no_others
        a_closed_page_says_that_it_is_gone
        a_dialog_freezes_its_own_page_only
        a_dialog_is_answered_with_what_was_said
        a_dialog_that_is_not_open_cannot_be_answered
        the_log_is_taken_once_and_in_order
        a_living_context_is_found_again_with_its_pages
        a_page_that_a_page_opens_joins_its_context
        pages_opened_by_us_are_no_popups
        a_page_can_be_pictured_and_printed
        what_a_page_asked_the_network_for_is_listed
        downloads_go_to_their_contexts_own_directory
        what_is_copied_stays_in_its_context
        files_need_a_chooser_or_an_input
    );
}
