//! Links the program at a fixed address. One that can be loaded anywhere is rewritten in memory at every start, 230 kB that no two processes
//! share, and every agent has a process of its own. What it links to stays at random addresses.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    // Elsewhere (musl, macOS) the linker wants it otherwise, or does not know the word.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
