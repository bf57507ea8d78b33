//! The command line and the stdio shim.
fn main() {}
