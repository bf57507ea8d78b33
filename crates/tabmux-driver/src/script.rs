//! The script that reads and works on pages. It is one for all drivers: each runs it in a world of its own in every frame,
//! where no script of the page sees it or has a say in it.
//!
//! Each file registers verbs; `tabmux.call(verb, argument, first, step)` of `door.js` calls one. It gives `{value, next}`:
//! what the verb came to, and the first number that no ref has yet.

/// An expression that makes `globalThis.tabmux`. Run twice, it changes nothing.
pub const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\nif (globalThis.tabmux) return;\n",
    include_str!("script/refs.js"),
    include_str!("script/secret.js"),
    include_str!("script/roles.js"),
    include_str!("script/names.js"),
    include_str!("script/tokens.js"),
    include_str!("script/rest.js"),
    include_str!("script/frames.js"),
    // Names in a block are its own.
    "{\n",
    include_str!("script/manner.js"),
    include_str!("script/walk.js"),
    include_str!("script/controls.js"),
    include_str!("script/lines.js"),
    include_str!("script/snapshot.js"),
    include_str!("script/changes.js"),
    "}\n",
    include_str!("script/elements.js"),
    include_str!("script/text.js"),
    include_str!("script/closed.js"),
    // Acting has words of its own.
    "{\n",
    include_str!("script/area.js"),
    include_str!("script/locate.js"),
    include_str!("script/watch.js"),
    include_str!("script/aim.js"),
    include_str!("script/arm.js"),
    include_str!("script/fill.js"),
    include_str!("script/choose.js"),
    include_str!("script/keys.js"),
    include_str!("script/drag.js"),
    // So has reading.
    "{\n",
    include_str!("script/content.js"),
    include_str!("script/markdown.js"),
    include_str!("script/reading.js"),
    "}\n}\n",
    include_str!("script/door.js"),
    "})()",
);
