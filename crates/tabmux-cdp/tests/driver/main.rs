//! The driver on real Chromium: the contract every driver keeps, and what only a real browser does.

mod act;
mod answers;
mod attach;
mod chromium;
mod contract;
mod copies;
mod databases;
#[path = "../keeper/display.rs"]
mod display;
mod elsewhere;
mod field;
mod fixtures;
mod flood;
mod frames;
mod given_up;
mod hostile;
mod memory;
mod mute;
mod nasty;
mod password;
mod popups;
mod scaled;
mod script;
mod shot;
mod sight;
mod spinning;
mod support;
mod wait;
mod windows;
mod worlds;
