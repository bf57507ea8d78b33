//! Several calls in one: the steps of `execute_sequence`, each an ordinary call through the caller's own door. Nothing is held
//! between steps: no session, no queue, no right.

mod compare;
mod expect;
mod plan;
mod report;
mod run;

pub(crate) use compare::compared;
pub(crate) use expect::Condition;
pub(crate) use plan::{Branch, OnError, branches};
pub(crate) use report::{data as report_data, failure, success};
pub(crate) use run::{Ending, run};
