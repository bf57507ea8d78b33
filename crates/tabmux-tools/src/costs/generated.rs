//! Tokens per tool. `TABMUX_BLESS=1 cargo test -p tabmux-tools costs` writes this file.

pub(super) const COSTS: &[(&str, usize)] = &[
    ("start_browser", 156),
    ("list_sessions", 65),
    ("set_current_session", 68),
    ("close_session", 67),
    ("close_all_sessions", 86),
    ("navigate", 148),
    ("new_page", 102),
    ("list_pages", 87),
    ("select_page", 99),
    ("close_page", 98),
    ("read_text", 78),
    ("screenshot", 154),
    ("console", 79),
    ("network", 122),
    ("evaluate", 99),
    ("wait_for", 141),
    ("handle_dialog", 111),
    ("cookies", 158),
    ("storage", 150),
    ("pdf", 113),
];
