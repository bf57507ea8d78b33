//! Browsers that do not do what a browser should, played by shell scripts.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use crate::support::{Family, SOON, Stage, promptly};
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::keeper::{keepers, launch};
use tabmux_cdp::launch::{Holder, LaunchError, Profile};
use tokio::time::timeout;

const GRACE: Option<Duration> = Some(Duration::from_secs(60));

#[tokio::test]
async fn a_browser_that_dies_at_once_is_quoted() {
    let stage = Stage::new(GRACE);
    let refused = launch(&stage.home, &stage.script("echo 'No usable sandbox!' >&2; exit 3")).await.unwrap_err();
    assert_eq!(refused, LaunchError::Died { status: "exit code 3".into(), words: "No usable sandbox!".into() });
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

/// As Chromium 148 says it.
#[tokio::test]
async fn a_browser_that_finds_no_display_says_that_and_nothing_else() {
    let stage = Stage::new(GRACE);
    let script =
        "echo 'ozone_platform_x11.cc:257] Missing X server or $DISPLAY' >&2; echo 'The platform failed to initialize.' >&2; exit 1";
    assert_eq!(launch(&stage.home, &stage.script(script)).await.unwrap_err(), LaunchError::NoDisplay);
}

#[tokio::test]
async fn a_browser_that_crashes_while_it_starts_is_started_again_a_few_times() {
    let stage = Stage::new(GRACE);
    let mark = stage.path("crashed-before");
    let mark = mark.display();
    let script = format!("if mkdir {mark} 2>/dev/null; then kill -SEGV $$; sleep 1; fi; ANSWER; exec sleep 1000");
    launch(&stage.home, &stage.script(&script)).await.unwrap().claim.end().await.unwrap();
    let refused = launch(&stage.home, &stage.script("kill -SEGV $$; sleep 1")).await.unwrap_err();
    assert!(matches!(&refused, LaunchError::Died { status, .. } if status == "signal 11"), "{refused:?}");
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

/// Chromium looks for itself, after we did.
#[tokio::test]
async fn exit_code_21_names_the_process_that_took_the_profile_meanwhile() {
    let stage = Stage::new(GRACE);
    let (profile, me) = (stage.path("mine"), std::process::id());
    let mut late = stage.script(&format!("ln -s \"$(uname -n)-{me}\" {}/SingletonLock; exit 21", profile.display()));
    late.profile = Profile::Named(profile.clone());
    std::fs::create_dir(&profile).unwrap();
    let _listener = UnixListener::bind(profile.join("SingletonSocket")).unwrap();
    let refused = launch(&stage.home, &late).await.unwrap_err();
    assert!(matches!(refused, LaunchError::ProfileHeld { holder: Holder::Process { pid, .. }, .. } if pid == me), "{refused:?}");
}

#[tokio::test]
async fn a_browser_that_cannot_be_started_is_named() {
    let stage = Stage::new(GRACE);
    let mut missing = stage.script("");
    missing.binary.path = stage.path("nothing");
    let refused = launch(&stage.home, &missing).await.unwrap_err();
    assert!(matches!(&refused, LaunchError::Unusable { path, .. } if *path == missing.binary.path), "{refused:?}");
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn a_talkative_browser_never_waits_for_its_stderr_to_be_read() {
    let stage = Stage::new(GRACE);
    let talkative = stage.script("head -c 1000000 /dev/zero >&2; ANSWER; exec sleep 1000");
    launch(&stage.home, &talkative).await.unwrap().claim.end().await.unwrap();
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn a_browser_that_will_not_go_is_killed_with_all_it_started() {
    let stage = Stage::new(GRACE);
    let stubborn = stage.script("trap '' TERM; setsid sleep 1000 & sleep 1000 & ANSWER; while :; do wait; done");
    let kept = launch(&stage.home, &stubborn).await.unwrap();
    let family = Family::of(kept.claim.about.keeper_pid);
    assert_eq!(family.len(), 4, "keeper, script, and two below it, one in a session of its own");
    kept.claim.end().await.unwrap();
    family.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

/// A daemon that dies in the middle of a launch leaves a keeper that nobody knows of.
#[tokio::test]
async fn a_browser_that_was_never_anybodys_is_ended_though_the_grace_time_is_endless() {
    let stage = Stage::new(None);
    let silent = stage.script("exec sleep 1000");
    let kept = async {
        while keepers(&stage.home.runtime_dir).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        launched = launch(&stage.home, &silent) => panic!("it never answers, and yet: {launched:?}"),
        known = timeout(SOON, kept) => known.expect("there is a keeper"),
    }
    stage.deserted();
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

/// Somebody waited for it until it was there, and then no longer.
#[tokio::test]
async fn a_browser_that_is_given_up_before_it_is_connected_to_ends_though_the_grace_time_is_endless() {
    let stage = Stage::new(None);
    let mute = stage.script(&format!("ANSWER; {}", and_then_silence(&stage)));
    given_up(&stage, CdpBrowser::launch(&stage.home, &mute)).await;
}

/// At once: a keeper alone waits ten seconds for somebody else to want it.
#[tokio::test]
async fn a_browser_that_is_given_up_before_it_answers_ends_at_once() {
    let stage = Stage::new(None);
    let silent = stage.script(&and_then_silence(&stage));
    let began = Instant::now();
    given_up(&stage, launch(&stage.home, &silent)).await;
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
}

/// Leaves a mark when it is asked something, and never answers.
fn and_then_silence(stage: &Stage) -> String {
    format!("head -c 1 <&3 >/dev/null; mkdir {}; exec sleep 1000", stage.path("asked").display())
}

/// Gives the launch up when the browser is asked what it never answers. Nothing is left of it.
async fn given_up<T: std::fmt::Debug>(stage: &Stage, launching: impl Future<Output = T>) {
    let mark = stage.path("asked");
    let asked = async {
        while !mark.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        launched = launching => panic!("it never answers, and yet: {launched:?}"),
        asked = timeout(SOON, asked) => asked.expect("it is asked"),
    }
    let gone = async {
        while !stage.leftovers().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(SOON, gone).await.expect("nothing is left");
}
