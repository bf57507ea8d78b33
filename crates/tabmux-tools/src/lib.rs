//! Everything an agent can ask for: one file per tool, one table. A tool is handed its session desk or its page
//! and cannot choose another. Client ids and protocol names are deliberately absent.
//!
//! A call: `named` finds the tool, `common` takes out what every call may say, the tool reads the rest.

mod act;
mod address;
mod arguments;
mod costs;
mod desk;
pub mod docs;
mod file;
mod pages;
mod picture;
mod proxy;
mod references;
mod reply;
mod sequence;
mod table;
#[cfg(test)]
mod testing;
mod tokens;
mod tool;
mod tools;
mod visible;

pub use address::{allowed_url, denied_url};
pub use arguments::{Arguments, Common, MAX_TIMEOUT, common, nearest};
pub use costs::{cost, list_cost};
pub use desk::{Called, Desk, Forked, GrantView, OpenSession, SessionList, SessionView};
pub use pages::{Move, PageRef, PageView, Pages};
pub use references::{Found, fill};
pub use reply::{Content, MAX_TEXT_BYTES, Reply, place};
pub use table::{TABLE, find, is_for_later, listing, named, schema, shown};
pub use tokens::tokens;
pub use tool::{DeskTool, Effect, Group, Late, Level, PageTool, Run, Tool, ToolResult};
pub use tools::upload_file::is_system_file;
pub use visible::{line as visible_line, quoted as visible_quoted, text as visible_text};
