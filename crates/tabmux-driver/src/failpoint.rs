//! Places where a test can have the daemon die as if by `kill -9`: it makes a file of the place's name in the directory that
//! `TABMUX_FAILPOINTS` names, and the first daemon to pass there takes the file away and ends itself. Of all this nothing is
//! in a release build.

/// Dies here, if that is what a test wants to see.
#[inline]
pub fn failpoint(place: &str) {
    #[cfg(debug_assertions)]
    die_if_asked(place);
    #[cfg(not(debug_assertions))]
    let _ = place;
}

#[cfg(debug_assertions)]
fn die_if_asked(place: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    use std::path::PathBuf;
    use std::sync::LazyLock;

    static DIRECTORY: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os("TABMUX_FAILPOINTS").map(PathBuf::from));
    let Some(directory) = &*DIRECTORY else { return };
    // Who takes the file away dies, and nobody after it.
    if std::fs::remove_file(directory.join(place)).is_ok() {
        kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
        // The signal comes before anything else can happen here, but the compiler cannot know.
        std::process::abort();
    }
}
