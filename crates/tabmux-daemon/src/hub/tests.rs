//! What the hub promises its callers, each with the fake browser and directories of its own.

mod away;
mod browser;
mod clients;
mod clocks;
mod commands;
mod copies;
mod current;
mod dialogs;
mod forks;
mod handover;
mod moves;
mod opening;
mod queue;
mod reach;
mod replies;
mod restart;
mod secrets;
mod sequences;
mod sessions;
mod shares;
mod succession;
mod tabs;
mod watching;
mod worlds;
