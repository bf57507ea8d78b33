//! One contender with K agents: ready, memory, one call at a time, all at once. A contender that hangs is ended with
//! all its processes when its time is over, and every wait here ends with them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::agent::{Agent, Contender, Ground};
use super::check::Question;
use super::pages::{Page, Pages};
use super::raw::RawPipe;
use super::result::{Measured, Spread, Tally};
use super::tree;

/// How long each part may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Each kind of call, one at a time.
    pub(super) alone: Duration,
    /// All agents at once.
    pub(super) together: Duration,
    /// The whole measurement, after which the contender is ended.
    pub(super) limit: Duration,
}

/// An agent and the page it is on.
pub(super) struct Seat {
    agent: Box<dyn Agent>,
    page: Page,
    next_number: u64,
}

/// More would only take time from the slower contenders.
const MAX_SAMPLES: usize = 1000;
const MIN_SAMPLES: usize = 5;
/// Browsers go on for a moment after the last page has loaded.
const SETTLE: Duration = Duration::from_secs(1);

/// Ends the tree when nobody has called it off in time.
pub(super) struct Watchdog {
    hung: Arc<AtomicBool>,
    // Dropping it calls the watchdog off.
    _off: Sender<()>,
}

pub(super) fn measure(contender: &Contender, ground: &Ground, pages: &Pages, agents: usize, pace: Pace) -> Result<Measured> {
    let watchdog = Watchdog::start(pace.limit);
    let measured = measure_watched(contender, ground, pages, agents, pace);
    if watchdog.has_bitten() {
        bail!("hung: ended with all its processes after {} s", pace.limit.as_secs());
    }
    measured
}

fn measure_watched(contender: &Contender, ground: &Ground, pages: &Pages, agents: usize, pace: Pace) -> Result<Measured> {
    let mut tally = Tally::default();
    let began = Instant::now();
    let mut seats = open((contender.agents)(ground, agents)?, pages, &mut tally);
    let ready_ms = began.elapsed().as_secs_f64() * 1e3;
    if seats.len() < agents {
        tree::end()?;
        bail!("only {} of {agents} agents became ready: {}", seats.len(), tally.first_problem.unwrap_or_default());
    }
    std::thread::sleep(SETTLE);
    let ready = tree::weigh()?;
    let binaries: Vec<_> = ready.browsers.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy()).collect();
    let evaluate = one_at_a_time(&mut seats, pace.alone, &mut tally, |seat, tally| seat.evaluate(tally));
    let navigate = one_at_a_time(&mut seats, pace.alone, &mut tally, |seat, tally| seat.navigate(pages, tally));
    let screenshot = one_at_a_time(&mut seats, pace.alone, &mut tally, Seat::screenshot);
    let calls_per_s = all_at_once(&mut seats, pace.together, &mut tally);
    let after = tree::weigh()?;
    let binary = binaries.join(", ");
    // Killed first, so that no agent's end has to be waited for.
    tree::end()?;
    Ok(Measured {
        ready_ms,
        memory_kb: ready.memory_kb,
        memory_after_kb: after.memory_kb,
        processes: ready.processes,
        binary,
        evaluate,
        navigate,
        screenshot,
        calls_per_s,
        tally,
    })
}

/// As many contexts as there are agents, each at a page of its own, in a browser with these flags and nobody but a pipe client.
pub(super) fn weigh_bare(browser: &Path, flags: &[String], pages: &Pages, agents: usize) -> Result<u64> {
    let directory = tempfile::tempdir()?;
    let url = |agent| pages.url(Page { agent, visit: 0 });
    let mut raw = RawPipe::open_with(browser, flags, &directory.path().join("bare"), &url(0))?;
    for agent in 1..agents {
        raw.open_context(&url(agent))?;
    }
    std::thread::sleep(SETTLE);
    let weight = tree::weigh()?;
    drop(raw);
    tree::end()?;
    Ok(weight.memory_kb)
}

/// Opens all agents at the same time; those that fail are left out and counted.
pub(super) fn open(agents: Vec<Box<dyn Agent>>, pages: &Pages, tally: &mut Tally) -> Vec<Seat> {
    let opening = |(number, mut agent): (usize, Box<dyn Agent>)| {
        let page = Page { agent: number, visit: 0 };
        let mut tally = Tally::default();
        let opened = ask(Question::Navigate(page), &mut tally, || agent.open(&pages.url(page)));
        (opened.map(|_| Seat { agent, page, next_number: 0 }), tally)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = agents.into_iter().enumerate().map(|numbered| scope.spawn(move || opening(numbered))).collect();
        let mut seats = Vec::new();
        for thread in threads {
            let (seat, counted) = thread.join().expect("an agent's thread does not panic");
            tally.add(counted);
            seats.extend(seat);
        }
        seats
    })
}

fn one_at_a_time(
    seats: &mut [Seat],
    time: Duration,
    tally: &mut Tally,
    call: impl Fn(&mut Seat, &mut Tally) -> Option<Duration> + Sync,
) -> Spread {
    // Every agent's first call of a kind is a warm-up and has no time.
    std::thread::scope(|scope| {
        let threads: Vec<_> = seats.iter_mut().map(|seat| scope.spawn(|| warm_up(seat, &call))).collect();
        for thread in threads {
            tally.add(thread.join().expect("an agent's thread does not panic"));
        }
    });
    let mut times = Vec::new();
    let began = Instant::now();
    let mut asked = 0;
    while asked < MAX_SAMPLES && (asked < MIN_SAMPLES || began.elapsed() < time) {
        let seat = asked % seats.len();
        times.extend(call(&mut seats[seat], tally));
        asked += 1;
    }
    Spread::of(times)
}

fn warm_up(seat: &mut Seat, call: impl Fn(&mut Seat, &mut Tally) -> Option<Duration>) -> Tally {
    let mut tally = Tally::default();
    call(seat, &mut tally);
    tally
}

fn all_at_once(seats: &mut [Seat], time: Duration, tally: &mut Tally) -> f64 {
    let began = Instant::now();
    let counted: Vec<Tally> = std::thread::scope(|scope| {
        let call = |seat: &mut Seat| {
            let mut tally = Tally::default();
            while began.elapsed() < time {
                seat.evaluate(&mut tally);
            }
            tally
        };
        let threads: Vec<_> = seats.iter_mut().map(|seat| scope.spawn(move || call(seat))).collect();
        threads.into_iter().map(|thread| thread.join().expect("an agent's thread does not panic")).collect()
    });
    let took = began.elapsed().as_secs_f64();
    let right: u64 = counted.iter().map(|tally| tally.right).sum();
    counted.into_iter().for_each(|counted| tally.add(counted));
    right as f64 / took
}

impl Seat {
    pub(super) fn evaluate(&mut self, tally: &mut Tally) -> Option<Duration> {
        self.next_number += 1;
        let (page, number) = (self.page, self.next_number);
        let expression = Question::expression(number);
        ask(Question::Evaluate { page, number }, tally, || self.agent.evaluate(&expression))
    }

    fn navigate(&mut self, pages: &Pages, tally: &mut Tally) -> Option<Duration> {
        self.page.visit += 1;
        let url = pages.url(self.page);
        ask(Question::Navigate(self.page), tally, || self.agent.navigate(&url))
    }

    fn screenshot(&mut self, tally: &mut Tally) -> Option<Duration> {
        ask(Question::Screenshot, tally, || self.agent.screenshot())
    }
}

/// Asks, times and judges; only right answers have a time.
pub(super) fn ask(question: Question, tally: &mut Tally, call: impl FnOnce() -> Result<String>) -> Option<Duration> {
    let began = Instant::now();
    let answer = call();
    let took = began.elapsed();
    match answer {
        Ok(answer) if question.is_answered_by(&answer) => {
            tally.right += 1;
            return Some(took);
        }
        Ok(answer) => {
            tally.wrong += 1;
            tally.problem(&format!("{question:?} was answered {answer}"));
        }
        Err(error) => {
            tally.errors += 1;
            tally.problem(&format!("{question:?} failed: {error:#}"));
        }
    }
    None
}

impl Watchdog {
    pub(super) fn start(limit: Duration) -> Self {
        let hung = Arc::new(AtomicBool::new(false));
        let (off, called_off) = channel::<()>();
        let flag = Arc::clone(&hung);
        std::thread::spawn(move || {
            if called_off.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                flag.store(true, Ordering::Relaxed);
                tree::end().context("ending a contender that hangs")
            } else {
                Ok(())
            }
        });
        Self { hung, _off: off }
    }

    pub(super) fn has_bitten(&self) -> bool {
        self.hung.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    /// Answers for another page now and then.
    struct Confused {
        page: Page,
        calls: u64,
    }

    impl Agent for Confused {
        fn open(&mut self, url: &str) -> Result<String> {
            Ok(url.to_owned())
        }

        fn navigate(&mut self, _: &str) -> Result<String> {
            Err(anyhow!("refused"))
        }

        fn evaluate(&mut self, _: &str) -> Result<String> {
            self.calls += 1;
            let page = if self.calls.is_multiple_of(5) { Page { agent: 99, ..self.page } } else { self.page };
            Ok(format!("\"{page} sum {}\"", self.calls + 1))
        }

        fn screenshot(&mut self) -> Result<String> {
            Ok("iVBORw0KGgo".into())
        }
    }

    #[test]
    fn wrong_answers_and_errors_are_counted_and_have_no_time() {
        let pages = Pages::serve().unwrap();
        let mut tally = Tally::default();
        let agents = (0..2).map(|agent| Box::new(Confused { page: Page { agent, visit: 0 }, calls: 0 }) as Box<dyn Agent>);
        let mut seats = open(agents.collect(), &pages, &mut tally);
        assert_eq!((seats.len(), tally.right), (2, 2));
        let spread = one_at_a_time(&mut seats, Duration::ZERO, &mut tally, |seat, tally| seat.evaluate(tally));
        // Two warm-ups, five asked: agents answer 4 and 3 times.
        assert_eq!((spread.samples, tally.right, tally.wrong), (5, 9, 0));
        one_at_a_time(&mut seats, Duration::ZERO, &mut tally, |seat, tally| seat.evaluate(tally));
        assert_eq!(tally.wrong, 2);
        let none = one_at_a_time(&mut seats, Duration::ZERO, &mut tally, |seat, tally| seat.navigate(&pages, tally));
        assert_eq!((none.samples, tally.errors), (0, 7));
        assert!(tally.first_problem.unwrap().contains("agent-99"));
    }
}
