//! The program. Everything is in the library beside it, where tests reach it.

fn main() -> std::process::ExitCode {
    tabmux::main()
}
