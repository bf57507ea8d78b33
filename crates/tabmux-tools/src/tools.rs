//! One file per tool; `table.rs` puts them in order.

pub(crate) mod assert;
pub(crate) mod close_all_sessions;
pub(crate) mod close_page;
pub(crate) mod close_session;
pub(crate) mod console;
pub(crate) mod cookies;
pub(crate) mod downloads;
pub(crate) mod emulate;
pub(crate) mod evaluate;
pub(crate) mod execute_sequence;
pub(crate) mod handle_dialog;
pub(crate) mod list_pages;
pub(crate) mod list_sessions;
pub(crate) mod navigate;
pub(crate) mod network;
pub(crate) mod new_page;
pub(crate) mod pdf;
pub(crate) mod read_text;
pub(crate) mod screenshot;
pub(crate) mod select_page;
pub(crate) mod set_current_session;
pub(crate) mod start_browser;
pub(crate) mod storage;
pub(crate) mod upload_file;
pub(crate) mod wait_for;
