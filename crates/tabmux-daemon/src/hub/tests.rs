//! What the hub promises its callers, each with the fake browser and directories of its own.

mod clients;
mod clocks;
mod commands;
mod current;
mod dialogs;
mod opening;
mod queue;
mod replies;
mod restart;
mod sessions;
mod tabs;
