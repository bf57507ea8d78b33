//! Random choices that can be made again: `TABMUX_SEED` repeats the run that printed it.

use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// Says its seed, so that a failure can be repeated.
    pub fn announced(what: &str) -> Self {
        let now = || u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos());
        let seed = super::amount("TABMUX_SEED", usize::try_from(now()).unwrap());
        eprintln!("{what}: TABMUX_SEED={seed}");
        Self(seed as u64)
    }

    /// What is chosen in one part of a run. Announced by itself it is the same: the part's seed repeats it alone.
    pub fn part(&self, number: usize) -> Self {
        Self(self.0.wrapping_add(number as u64))
    }

    /// Before anything was chosen.
    pub fn seed(&self) -> u64 {
        self.0
    }

    /// A number below `bound` (splitmix64).
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    /// So many of them, each at most once, in any order.
    pub fn some_of<T>(&mut self, mut items: Vec<T>, count: usize) -> Vec<T> {
        (0..count.min(items.len())).map(|_| items.swap_remove(self.below(items.len()))).collect()
    }
}
