//! How a browser is kept to the sites its operator allows: it resolves no other host, whoever asks (page, frame, worker,
//! socket, prefetch, redirect) and also where a host is written as an address. So nothing has to be watched while it runs.
//!
//! Measured on Chromium 148, both builds. The rules do not hold for hosts that a proxy resolves, so proxies are off; they do not
//! hold for datagrams that WebRTC sends to an address a page names, so those are off too.

use std::net::{IpAddr, Ipv6Addr};

use tabmux_driver::{Domains, Hosts, Reach};
use url::Host;

/// Each build knows one of the first two names. Headless-shell does not know `--no-proxy-server` and would ask the proxy that its environment names.
const NO_WAY_AROUND: [&str; 3] = [
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-server=direct://",
];

/// Switches of the user's own with which the rules could not be kept.
pub const AGAINST_RULES: [&str; 7] = [
    "--host-resolver-rules",
    "--host-rules",
    "--proxy-server",
    "--proxy-pac-url",
    "--proxy-auto-detect",
    "--webrtc-ip-handling-policy",
    "--force-webrtc-ip-handling-policy",
];

pub(super) fn arguments(domains: &Domains) -> Vec<String> {
    let rules: Vec<String> = match domains.reach() {
        Reach::Everything => return Vec::new(),
        Reach::AllBut(denied) => denied.iter().flat_map(written).map(|host| format!("MAP {host} ~NOTFOUND")).collect(),
        Reach::Only(allowed) => {
            let allowed = allowed.iter().flat_map(written).map(|host| format!("EXCLUDE {host}"));
            std::iter::once("MAP * ~NOTFOUND".to_owned()).chain(allowed).collect()
        }
    };
    let rules = format!("--host-resolver-rules={}", rules.join(","));
    NO_WAY_AROUND.iter().map(|&flag| flag.to_owned()).chain([rules]).collect()
}

/// Every way the browser may write such a host: with the dot of a whole name, and an old address as a new one.
fn written(hosts: &Hosts) -> Vec<String> {
    match hosts {
        Hosts::Exactly(name) => vec![name.clone(), format!("{name}.")],
        Hosts::Below(name) => vec![format!("*.{name}"), format!("*.{name}.")],
        Hosts::Address(IpAddr::V4(address)) => vec![address.to_string(), of_six(address.to_ipv6_mapped())],
        Hosts::Address(IpAddr::V6(address)) => vec![of_six(*address)],
    }
}

/// As browsers write it, without the brackets.
fn of_six(address: Ipv6Addr) -> String {
    Host::<&str>::Ipv6(address).to_string().trim_matches(['[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use tabmux_driver::Domain;

    use super::*;

    fn rules(allow: &str, deny: &str) -> Vec<String> {
        let list = |text: &str| text.split_whitespace().filter_map(Domain::parse).collect();
        arguments(&Domains::new(list(allow), list(deny)).unwrap())
    }

    #[test]
    fn only_what_is_allowed_is_resolved_however_it_is_written() {
        assert!(rules("", "").is_empty());
        let allowed = rules("a.test 127.0.0.1", "");
        let expected = "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE a.test,EXCLUDE a.test.,EXCLUDE *.a.test,EXCLUDE *.a.test.,\
                        EXCLUDE 127.0.0.1,EXCLUDE ::ffff:7f00:1";
        assert_eq!(allowed.last().unwrap(), expected);
        let denied = rules("", "*.b.test ::1");
        assert_eq!(denied.last().unwrap(), "--host-resolver-rules=MAP *.b.test ~NOTFOUND,MAP *.b.test. ~NOTFOUND,MAP ::1 ~NOTFOUND");
        assert!(denied.contains(&"--proxy-server=direct://".to_owned()));
    }
}
