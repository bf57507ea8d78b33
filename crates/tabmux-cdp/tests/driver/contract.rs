//! The driver's contract on real Chromium.

use std::sync::Arc;

use tabmux_driver::Browser;

use crate::support;

async fn start() -> (Arc<dyn Browser>, String) {
    (support::chromium().await, support::site(|path| format!("<p>The page at {path}.")).await)
}

tabmux_driver::contract_tests!(start().await);
