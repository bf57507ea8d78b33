//! Keepers and their browsers, with real processes: who may go on with a browser, and what is left when somebody dies.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::support::{Family, SOON, Stage, Wire, full, headless, open_files, promptly, proportional_kb, session_of};
use serde_json::json;
use tabmux_cdp::keeper::{self, End, Exit, claim, keepers, launch};
use tabmux_cdp::launch::{Holder, LaunchError, Profile};
use tokio::time::timeout;

const GRACE: Option<Duration> = Some(Duration::from_secs(60));

#[tokio::test]
async fn a_launched_browser_answers_and_its_end_leaves_nothing() {
    let stage = Stage::new(GRACE);
    let (pipe, claim) = launch(&stage.home, &headless()).await.unwrap().into_parts();
    let mut wire = Wire::new(pipe);
    assert!(wire.answers(1).await);
    assert_eq!((claim.about.generation, keepers(&stage.home.runtime_dir)), (1, vec![claim.about.socket.clone()]));
    assert_eq!(std::fs::metadata(&claim.about.socket).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&claim.about.nest).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(claim.about.profile.starts_with(&claim.about.nest) && claim.about.profile.is_dir());
    let family = Family::of(claim.about.keeper_pid);
    assert!(family.len() > 2, "keeper, browser, zygote");
    claim.end().await.unwrap();
    family.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn the_next_daemon_goes_on_with_a_pipe_full_of_unread_replies() {
    let stage = Stage::new(GRACE);
    let (pipe, first) = launch(&stage.home, &headless()).await.unwrap().into_parts();
    let (socket, browser) = (first.about.socket.clone(), first.about.browser_pid);
    let mut wire = Wire::new(pipe);
    for id in 1..=50 {
        wire.ask(id, "Browser.getVersion").await;
    }
    wire.something_unread().await;
    drop((wire, first));

    let (pipe, second) = claim(&socket).await.unwrap().into_parts();
    assert_eq!((second.about.browser_pid, second.about.generation), (browser, 2));
    let mut wire = Wire::new(pipe);
    wire.ask(51, "Browser.getVersion").await;
    for id in 1..=51 {
        assert_eq!(wire.message().await["id"], id);
    }
    second.end().await.unwrap();
}

#[tokio::test]
async fn a_second_claimant_is_refused_while_the_first_lives() {
    let stage = Stage::new(GRACE);
    let kept = launch(&stage.home, &headless()).await.unwrap();
    let refused = claim(&kept.claim.about.socket).await.unwrap_err();
    assert_eq!(refused, LaunchError::Claimed { pid: std::process::id() });
    let (pipe, claim) = kept.into_parts();
    assert!(Wire::new(pipe).answers(1).await);
    claim.end().await.unwrap();
}

#[tokio::test]
async fn a_killed_keeper_is_replaced_and_the_browser_does_not_notice() {
    let stage = Stage::new(GRACE);
    let (pipe, mut ours) = launch(&stage.home, &headless()).await.unwrap().into_parts();
    let (old, socket, browser) = (ours.about.keeper_pid, ours.about.socket.clone(), Family::of(ours.about.browser_pid));
    let mut wire = Wire::new(pipe);
    wire.ask(1, "Browser.getVersion").await;
    Family::of(old).kill();
    assert_eq!(timeout(SOON, ours.ended()).await.unwrap(), End::KeeperGone);
    ours.replace_keeper(&stage.home).await.unwrap();
    assert!(ours.about.keeper_pid != old && ours.about.generation == 1);
    assert_eq!(wire.message().await["id"], 1);
    assert!(wire.answers(2).await);

    // The new keeper is a whole one: it can be claimed, and it ends and cleans as the first would have.
    drop((wire, ours));
    let (pipe, ours) = claim(&socket).await.unwrap().into_parts();
    assert_eq!(ours.about.generation, 2);
    assert!(Wire::new(pipe).answers(3).await);
    ours.end().await.unwrap();
    browser.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn an_adopted_browser_that_is_killed_is_noticed_and_its_files_go() {
    let stage = Stage::new(GRACE);
    let mut kept = launch(&stage.home, &headless()).await.unwrap();
    Family::of(kept.claim.about.keeper_pid).kill();
    assert_eq!(timeout(SOON, kept.claim.ended()).await.unwrap(), End::KeeperGone);
    kept.claim.replace_keeper(&stage.home).await.unwrap();
    let (browser, keeper) = (Family::of(kept.claim.about.browser_pid), Family::of(kept.claim.about.keeper_pid));
    browser.kill();
    let end = timeout(SOON, kept.claim.ended()).await.unwrap();
    assert!(matches!(end, End::BrowserExited { exit: Exit { code: None, signal: None }, .. }), "{end:?}");
    keeper.gone_within(SOON);
    browser.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn keeper_and_browser_killed_together_leave_nothing_once_the_keeper_is_replaced() {
    let stage = Stage::new(GRACE);
    let mut kept = launch(&stage.home, &headless()).await.unwrap();
    let (keeper, browser) = (Family::of(kept.claim.about.keeper_pid), Family::of(kept.claim.about.browser_pid));
    keeper.kill();
    browser.kill();
    assert_eq!(timeout(SOON, kept.claim.ended()).await.unwrap(), End::KeeperGone);
    kept.claim.replace_keeper(&stage.home).await.unwrap();
    assert!(matches!(timeout(SOON, kept.claim.ended()).await.unwrap(), End::BrowserExited { .. }));
    kept.claim.end().await.unwrap();
    browser.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn a_browser_without_keeper_and_daemon_ends_by_itself_and_the_next_start_sweeps() {
    let stage = Stage::new(GRACE);
    let kept = launch(&stage.home, &headless()).await.unwrap();
    let browser = Family::of(kept.claim.about.browser_pid);
    assert!(keeper::sweep(&stage.home.runtime_dir, &stage.home.profiles_dir).is_empty(), "it lives");
    Family::of(kept.claim.about.keeper_pid).kill();
    let nest = kept.claim.about.nest.clone();
    drop(kept);
    browser.gone_within(promptly());
    stage.deserted();
    assert!(nest.is_dir(), "nobody was left to remove it");
    assert_eq!(keeper::sweep(&stage.home.runtime_dir, &stage.home.profiles_dir), [nest]);
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn an_end_without_a_keeper_ends_the_browser_all_the_same() {
    let stage = Stage::new(GRACE);
    let (_pipe, claim) = launch(&stage.home, &headless()).await.unwrap().into_parts();
    let browser = Family::of(claim.about.browser_pid);
    Family::of(claim.about.keeper_pid).kill();
    claim.end().await.unwrap();
    browser.gone_within(promptly());
}

#[tokio::test]
async fn a_browser_that_nobody_claims_is_ended_after_the_grace_time() {
    let stage = Stage::new(Some(Duration::from_millis(300)));
    let kept = launch(&stage.home, &headless()).await.unwrap();
    let family = Family::of(kept.claim.about.keeper_pid);
    drop(kept);
    family.gone_within(SOON);
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn a_claim_in_time_stops_the_grace_clock_and_none_means_forever() {
    let stage = Stage::new(Some(Duration::from_secs(2)));
    let forever = Stage::new(None);
    let browser = headless();
    let (kept, unclaimed) = tokio::join!(launch(&stage.home, &browser), launch(&forever.home, &browser));
    let (socket, lonely) = (kept.unwrap().claim.about.socket.clone(), unclaimed.unwrap().claim.about.socket.clone());
    let mut kept = claim(&socket).await.unwrap();
    assert!(timeout(Duration::from_secs(3), kept.claim.ended()).await.is_err(), "it was claimed again");
    kept.claim.end().await.unwrap();
    claim(&lonely).await.unwrap().claim.end().await.unwrap();
}

#[tokio::test]
async fn a_killed_browser_is_reported_with_its_exit_and_its_profile_goes() {
    let stage = Stage::new(GRACE);
    let mut kept = launch(&stage.home, &headless()).await.unwrap();
    let (browser, keeper) = (Family::of(kept.claim.about.browser_pid), Family::of(kept.claim.about.keeper_pid));
    browser.kill();
    let end = timeout(promptly(), kept.claim.ended()).await.unwrap();
    assert!(matches!(end, End::BrowserExited { exit: Exit { code: None, signal: Some(9) }, .. }), "{end:?}");
    keeper.gone_within(SOON);
    browser.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn two_launches_at_once_are_independent() {
    let stage = Stage::new(GRACE);
    let browser = headless();
    let (one, other) = tokio::join!(launch(&stage.home, &browser), launch(&stage.home, &browser));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(keepers(&stage.home.runtime_dir).len(), 2);
    one.claim.end().await.unwrap();
    let (pipe, claim) = other.into_parts();
    assert!(Wire::new(pipe).answers(1).await);
    claim.end().await.unwrap();
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

/// The daemon's lock must not outlive it in a child.
#[tokio::test]
async fn neither_keeper_nor_browser_inherits_what_the_daemon_has_open_or_its_terminal() {
    let stage = Stage::new(GRACE);
    let path = stage.path("daemon.lock");
    let _lock = File::create(&path).unwrap();
    let kept = launch(&stage.home, &headless()).await.unwrap();
    for pid in [kept.claim.about.keeper_pid, kept.claim.about.browser_pid] {
        assert!(!open_files(pid).contains(&path));
        assert_eq!(session_of(pid), kept.claim.about.keeper_pid);
    }
    kept.claim.end().await.unwrap();
}

#[tokio::test]
async fn a_full_browser_leaves_nothing_either() {
    let stage = Stage::new(GRACE);
    let (pipe, claim) = launch(&stage.home, &full()).await.unwrap().into_parts();
    assert!(Wire::new(pipe).answers(1).await);
    let temporary: Vec<_> = std::fs::read_dir(claim.about.nest.join("t")).unwrap().collect();
    assert!(!temporary.is_empty(), "its temporary files are in the nest");
    let family = Family::of(claim.about.keeper_pid);
    claim.end().await.unwrap();
    family.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}

#[tokio::test]
async fn a_named_profile_stays_and_says_who_holds_it() {
    let stage = Stage::new(GRACE);
    let mut named = full();
    let profile = stage.path("mine");
    named.profile = Profile::Named(profile.clone());
    let kept = launch(&stage.home, &named).await.unwrap();
    let holder = |refused| match refused {
        LaunchError::ProfileHeld { holder: Holder::Process { pid, .. }, profile: held } if held == profile => pid,
        other => panic!("{other:?}"),
    };
    assert_eq!(holder(launch(&stage.home, &named).await.unwrap_err()), kept.claim.about.keeper_pid);
    // Without our own mark Chromium's is there, as if a person had started it.
    std::fs::remove_file(profile.join("tabmux.lock")).unwrap();
    assert_eq!(holder(launch(&stage.home, &named).await.unwrap_err()), kept.claim.about.browser_pid);
    kept.claim.end().await.unwrap();
    assert!(profile.join("Default").is_dir(), "a named profile is the user's");
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
    launch(&stage.home, &named).await.unwrap().claim.end().await.unwrap();
}

/// One runs beside every browser, so it must cost next to nothing.
#[tokio::test]
async fn a_keeper_is_tiny_and_has_one_thread() {
    let stage = Stage::new(GRACE);
    let kept = launch(&stage.home, &headless()).await.unwrap();
    let keeper = kept.claim.about.keeper_pid;
    let (memory, threads) = (proportional_kb(keeper), std::fs::read_dir(format!("/proc/{keeper}/task")).unwrap().count());
    println!("keeper: {memory} kB");
    assert!(memory < 4096 && threads == 1, "{memory} kB, {threads} threads");
    kept.claim.end().await.unwrap();
}

#[tokio::test]
async fn a_browser_begins_without_a_page_and_makes_pages_in_a_context_when_asked() {
    for browser in [headless(), full()] {
        let stage = Stage::new(GRACE);
        let (pipe, claim) = launch(&stage.home, &browser).await.unwrap().into_parts();
        let mut wire = Wire::new(pipe);
        let targets = wire.result(1, "Target.getTargets", &json!({})).await;
        let pages = targets["targetInfos"].as_array().unwrap().iter().filter(|target| target["type"] == "page");
        assert_eq!(pages.count(), 0, "{targets}");
        let context = wire.result(2, "Target.createBrowserContext", &json!({})).await["browserContextId"].take();
        let target = wire.result(3, "Target.createTarget", &json!({"url": "about:blank", "browserContextId": context})).await;
        wire.result(4, "Target.closeTarget", &target).await;
        assert!(wire.answers(5).await, "it stays without a page, too");
        claim.end().await.unwrap();
    }
}
