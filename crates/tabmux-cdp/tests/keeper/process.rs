//! A process that is a keeper and nothing else, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    tabmux_cdp::keeper::run()
}
