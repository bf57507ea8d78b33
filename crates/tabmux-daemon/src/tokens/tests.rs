use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_main_token_is_made_once_kept_private_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(dir.path()).unwrap();
    let path = dir.path().join(MAIN_FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(looks_like_a_token(text.trim_end()), "{text}");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(tokens.check(text.trim_end()), Some(TokenHolder::Main));
    let again = Tokens::open(dir.path()).unwrap();
    assert_eq!(again.check(text.trim_end()), Some(TokenHolder::Main));
    let other = tempfile::tempdir().unwrap();
    assert_eq!(Tokens::open(other.path()).unwrap().check(text.trim_end()), None);
}

#[test]
fn daemons_that_start_at_once_agree_on_one_main_token() {
    let dir = tempfile::tempdir().unwrap();
    let opened: Vec<Tokens> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..16).map(|_| scope.spawn(|| Tokens::open(dir.path()).unwrap())).collect();
        starting.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let text = fs::read_to_string(dir.path().join(MAIN_FILE)).unwrap();
    assert!(opened.iter().all(|tokens| tokens.check(text.trim_end()) == Some(TokenHolder::Main)));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    for name in [MAIN_FILE, NAMED_FILE] {
        let dir = tempfile::tempdir().unwrap();
        Tokens::open(dir.path()).unwrap().new_token("ci").unwrap();
        fs::set_permissions(dir.path().join(name), Permissions::from_mode(0o640)).unwrap();
        let fault = Tokens::open(dir.path()).unwrap_err();
        assert_eq!(fault.code, Code::PolicyDenied, "{fault}");
        assert!(fault.message.contains("0640"), "{fault}");
    }
}

#[test]
fn a_symbolic_link_in_place_of_the_token_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, format!("{PREFIX}{}", "a".repeat(64))).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
    symlink(&elsewhere, dir.path().join(MAIN_FILE)).unwrap();
    assert!(Tokens::open(dir.path()).unwrap_err().message.contains("cannot be opened"));
}

#[test]
fn a_file_that_holds_no_token_is_said_and_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(MAIN_FILE);
    for text in ["", "tmx_", "hello", &format!("{PREFIX}{}", "g".repeat(64))] {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Tokens::open(dir.path()).unwrap_err().code, Code::BadArgument, "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_named_token_is_an_identity_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(dir.path()).unwrap();
    let (ci, dev) = (tokens.new_token("ci").unwrap(), tokens.new_token("dev.box-1_a").unwrap());
    assert!(looks_like_a_token(&ci) && ci != dev);
    let reopened = Tokens::open(dir.path()).unwrap();
    for tokens in [&tokens, &reopened] {
        assert_eq!(tokens.check(&ci), Some(TokenHolder::Named("ci".into())));
        assert_eq!(tokens.check(&dev), Some(TokenHolder::Named("dev.box-1_a".into())));
        assert_eq!(tokens.check(&ci[..ci.len() - 1]), None);
        assert_eq!(tokens.check(""), None);
    }
    reopened.revoke("ci").unwrap();
    assert_eq!((reopened.check(&ci), reopened.list().len()), (None, 1));
    assert_eq!(reopened.check(&dev), Some(TokenHolder::Named("dev.box-1_a".into())));
    assert_eq!(Tokens::open(dir.path()).unwrap().check(&ci), None);
    assert_eq!(reopened.revoke("ci").unwrap_err().code, Code::BadArgument);
}

#[test]
fn the_file_of_named_tokens_is_private_and_holds_no_token() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(dir.path()).unwrap();
    let secret = tokens.new_token("ci").unwrap();
    let path = dir.path().join(NAMED_FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"ci\"") && !text.contains(&secret[PREFIX.len()..]), "{text}");
    assert_eq!(mode(&path), 0o600);
    assert!(tokens.list()[0].created_at.parse::<jiff::Timestamp>().is_ok());
}

#[test]
fn names_are_unique_and_plain() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = Tokens::open(dir.path()).unwrap();
    tokens.new_token(&"x".repeat(64)).unwrap();
    assert!(tokens.new_token(&"x".repeat(64)).unwrap_err().message.contains("already exists"));
    for name in ["", "a b", "ä", "../x/y", &"y".repeat(65)] {
        assert_eq!(tokens.new_token(name).unwrap_err().code, Code::BadArgument, "{name}");
    }
    assert_eq!(tokens.list().len(), 1);
}
