//! The driver on real Chromium: the contract every driver keeps, and what only a real browser does.

mod chromium;
mod contract;
mod given_up;
mod support;
mod wait;
