//! The pages that everything is tried on, served on loopback; frames of another origin come from the same server by its
//! other name.

use crate::support;

const PAGES: &[(&str, &str)] = &[
    ("todo.html", include_str!("../../../tabmux/tests/fixtures/todo.html")),
    ("drag.html", include_str!("../../../tabmux/tests/fixtures/drag.html")),
    ("frames.html", include_str!("../../../tabmux/tests/fixtures/frames.html")),
    ("inner.html", include_str!("../../../tabmux/tests/fixtures/inner.html")),
    ("shadow.html", include_str!("../../../tabmux/tests/fixtures/shadow.html")),
    ("canvas.html", include_str!("../../../tabmux/tests/fixtures/canvas.html")),
    ("endless.html", include_str!("../../../tabmux/tests/fixtures/endless.html")),
    ("modal.html", include_str!("../../../tabmux/tests/fixtures/modal.html")),
    ("slow.html", include_str!("../../../tabmux/tests/fixtures/slow.html")),
    ("spa.html", include_str!("../../../tabmux/tests/fixtures/spa.html")),
    ("form.html", include_str!("../../../tabmux/tests/fixtures/form.html")),
    ("wrong.html", include_str!("../../../tabmux/tests/fixtures/wrong.html")),
    ("room.html", include_str!("../../../tabmux/tests/fixtures/room.html")),
    ("shown.html", include_str!("../../../tabmux/tests/fixtures/shown.html")),
];

const SEEN: &str = include_str!("../../../tabmux/tests/fixtures/seen.js");

pub(crate) async fn site() -> String {
    support::serve(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        let name = path.split('?').next().unwrap_or_default();
        if name == "seen.js" {
            return support::response("200 OK\r\nContent-Type: text/javascript", SEEN);
        }
        let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default().trim();
        let other = host.replace("127.0.0.1", "localhost");
        match PAGES.iter().find(|(known, _)| *known == name) {
            Some((_, page)) => {
                support::response("200 OK\r\nContent-Type: text/html; charset=utf-8", &page.replace("$OTHER", &format!("http://{other}")))
            }
            None => support::response("404 Not Found", ""),
        }
    })
    .await
}
