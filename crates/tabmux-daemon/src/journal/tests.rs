//! Crashes, full disks and torn lines.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicI64;

use proptest::prelude::*;
use serde_json::json;

use super::replay::{Rest, replay};
use super::*;

/// As a disk's room: there is enough of it, but syncing fails.
const SYNC_FAILS: i64 = i64::MAX - 1;

/// A disk with so much room and no more, on top of real files.
struct SmallDisk {
    files: FileDisk,
    room: Arc<AtomicI64>,
    syncs: Arc<AtomicUsize>,
}

impl Journal {
    /// On a disk with so many bytes of room; more can be made later.
    pub(crate) fn open_small(dir: &Path, room: Arc<AtomicI64>) -> (Self, Replayed) {
        let (files, found, replayed) = disk::open(dir).unwrap();
        let small = SmallDisk { files, room, syncs: Arc::default() };
        (Self::start(small, found, dir.join(disk::JOURNAL)).unwrap(), replayed)
    }
}

impl Disk for SmallDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.room.load(Ordering::SeqCst)).unwrap_or(0);
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let written = self.files.append(&bytes[..bytes.len().min(room)])?;
        if room < 1_000_000 {
            self.room.fetch_sub(written as i64, Ordering::SeqCst);
        }
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        if self.room.load(Ordering::SeqCst) == SYNC_FAILS { Err(io::Error::other("sync failed")) } else { self.files.sync() }
    }

    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.files.cut_to(length)
    }

    fn put_snapshot(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as i64 > self.room.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.files.put_snapshot(bytes)
    }
}

fn small_disk(dir: &Path, room: i64) -> (Journal, Arc<AtomicI64>, Arc<AtomicUsize>) {
    let (files, position, _) = disk::open(dir).unwrap();
    let (room, syncs) = (Arc::new(AtomicI64::new(room)), Arc::new(AtomicUsize::new(0)));
    let disk = SmallDisk { files, room: Arc::clone(&room), syncs: Arc::clone(&syncs) };
    (Journal::start(disk, position, dir.join(disk::JOURNAL)).unwrap(), room, syncs)
}

async fn write(journal: &Journal, n: u64) {
    journal.append(&json!({"n": n}), Durability::Written).await.unwrap();
}

fn numbers(replayed: &Replayed) -> Vec<u64> {
    replayed.records.iter().map(|rec| rec["n"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn what_was_appended_is_replayed_in_order_by_the_next_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, replayed) = Journal::open(&dir.path().join("deep/state")).unwrap();
    assert_eq!(replayed, Replayed::default());
    write(&journal, 1).await;
    journal.append(&json!({"n": 2}), Durability::Synced).await.unwrap();
    journal.append_now(&json!({"n": 3})).unwrap();
    journal.close().await.unwrap();
    let (journal, replayed) = Journal::open(&dir.path().join("deep/state")).unwrap();
    assert_eq!((numbers(&replayed), replayed.torn), (vec![1, 2, 3], None));
    assert_eq!(journal.records_since_snapshot(), 3);
}

#[tokio::test]
async fn a_snapshot_stands_for_everything_before_it_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    write(&journal, 1).await;
    write(&journal, 2).await;
    journal.compact(&json!({"sum": 3})).await.unwrap();
    assert_eq!(journal.records_since_snapshot(), 0);
    write(&journal, 3).await;
    journal.close().await.unwrap();
    let (journal, replayed) = Journal::open(dir.path()).unwrap();
    assert_eq!((numbers(&replayed), replayed.snapshot), (vec![3], Some(json!({"sum": 3}))));
    assert_eq!(journal.records_since_snapshot(), 1);
    assert!(fs::read_to_string(dir.path().join(disk::JOURNAL)).unwrap().starts_with("{\"seq\":3,"));
}

#[tokio::test]
async fn the_files_are_the_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(disk::JOURNAL), "").unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    journal.compact(&json!({})).await.unwrap();
    for name in [disk::JOURNAL, disk::SNAPSHOT] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_torn_last_line_is_dropped_and_the_next_append_follows_the_good_part() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    write(&journal, 1).await;
    journal.close().await.unwrap();
    let path = dir.path().join(disk::JOURNAL);
    let good = fs::read(&path).unwrap();
    for tail in [&b"{\"seq\":2,\"crc\":\"0000"[..], b"{\"seq\":2,\"crc\":\"00000000\",\"rec\":{}}\n"] {
        fs::write(&path, [&good, tail].concat()).unwrap();
        let (journal, replayed) = Journal::open(dir.path()).unwrap();
        let torn = replayed.torn.clone().unwrap();
        assert_eq!((numbers(&replayed), torn.bytes, torn.kept_as), (vec![1], tail.len() as u64, None));
        assert_eq!(fs::read(&path).unwrap(), good);
        write(&journal, 2).await;
        journal.close().await.unwrap();
        assert_eq!(numbers(&Journal::open(dir.path()).unwrap().1), [1, 2]);
    }
}

#[tokio::test]
async fn a_bad_line_in_the_middle_stops_replay_and_the_rest_is_kept_aside() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    for n in 1..=4 {
        write(&journal, n).await;
    }
    journal.close().await.unwrap();
    let path = dir.path().join(disk::JOURNAL);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("{\"n\":2}", "{\"n\":9}")).unwrap();
    let (_, replayed) = Journal::open(dir.path()).unwrap();
    let dropped = replayed.torn.clone().unwrap();
    assert_eq!(numbers(&replayed), [1]);
    assert!(dropped.why.contains("has checksum"), "{}", dropped.why);
    let kept = dropped.kept_as.unwrap();
    assert_eq!(kept, dir.path().join("journal.damaged-1"));
    assert!(fs::read_to_string(kept).unwrap().ends_with("{\"n\":4}}\n"));
    assert_eq!(Journal::open(dir.path()).unwrap().1.torn, None);
}

#[tokio::test]
async fn an_unreadable_snapshot_is_kept_aside_with_its_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    journal.compact(&json!({"a": 1})).await.unwrap();
    write(&journal, 1).await;
    journal.close().await.unwrap();
    let path = dir.path().join(disk::SNAPSHOT);
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"a\":1", "\"a\":2")).unwrap();
    let (journal, replayed) = Journal::open(dir.path()).unwrap();
    assert_eq!((replayed.snapshot, replayed.records.len()), (None, 0));
    let kept = fs::read_to_string(replayed.torn.unwrap().kept_as.unwrap()).unwrap();
    assert!(kept.contains("\"a\":2") && kept.contains("\"n\":1"), "{kept}");
    write(&journal, 5).await;
    journal.close().await.unwrap();
    assert_eq!(numbers(&Journal::open(dir.path()).unwrap().1), [5]);
}

#[tokio::test]
async fn a_full_disk_is_said_and_appends_work_again_once_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, room, _) = small_disk(dir.path(), 60);
    write(&journal, 1).await;
    let fault = journal.append(&json!({"n": 2}), Durability::Synced).await.unwrap_err();
    assert_eq!(fault.code, Code::NoSpace);
    assert!(fault.message.contains("journal.jsonl") && !fault.hint.is_empty(), "{fault}");
    assert!(fs::read_to_string(dir.path().join(disk::JOURNAL)).unwrap().ends_with("{\"n\":1}}\n"), "the half line is cut away");
    let fault = journal.compact(&json!({"much": "x".repeat(100)})).await.unwrap_err();
    assert_eq!((fault.code, journal.records_since_snapshot()), (Code::NoSpace, 1));
    room.store(10_000, Ordering::SeqCst);
    write(&journal, 3).await;
    journal.close().await.unwrap();
    let (_, replayed) = Journal::open(dir.path()).unwrap();
    assert_eq!((numbers(&replayed), replayed.torn), (vec![1, 3], None));
}

#[tokio::test]
async fn one_sync_serves_all_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _, syncs) = small_disk(dir.path(), i64::MAX);
    let waiting: Vec<_> = (0..1000).map(|n| journal.append(&json!({"n": n}), Durability::Synced)).collect();
    for outcome in waiting {
        outcome.await.unwrap();
    }
    journal.close().await.unwrap();
    let syncs = syncs.load(Ordering::SeqCst);
    assert!((1..500).contains(&syncs), "{syncs} syncs for 1000 appends");
    assert_eq!(numbers(&Journal::open(dir.path()).unwrap().1), (0..1000).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_failed_sync_is_said_to_who_waits_and_is_tried_again_for_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _, syncs) = small_disk(dir.path(), SYNC_FAILS);
    write(&journal, 1).await;
    let fault = journal.append(&json!({"n": 2}), Durability::Synced).await.unwrap_err();
    assert!(fault.code == Code::Internal && fault.message.contains("could not be synced"), "{fault}");
    assert!(journal.close().await.is_err(), "nothing new was written, and yet the disk still lacks something");
    assert_eq!(syncs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_line_that_is_missing_is_noticed_by_the_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    for n in 1..=4 {
        write(&journal, n).await;
    }
    journal.close().await.unwrap();
    let path = dir.path().join(disk::JOURNAL);
    let lines = fs::read_to_string(&path).unwrap();
    let without =
        |gone: usize| lines.split_inclusive('\n').enumerate().filter(|(n, _)| *n != gone).map(|(_, line)| line).collect::<String>();
    for (gone, left) in [(0, &[][..]), (1, &[1])] {
        fs::write(&path, without(gone)).unwrap();
        let (_, replayed) = Journal::open(dir.path()).unwrap();
        assert_eq!(numbers(&replayed), left);
        assert!(replayed.torn.unwrap().why.contains("has number"));
    }
}

/// The queue is bounded in bytes; what does not fit is refused at once, never lost silently.
#[tokio::test]
async fn what_does_not_fit_into_the_queue_is_refused_and_a_closed_journal_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    let fault = journal.append_now(&json!({"n": "x".repeat(QUEUE_BYTES)})).unwrap_err();
    assert_eq!(fault.code, Code::QueueFull);
    write(&journal, 1).await;
    journal.close().await.unwrap();
    let fault = journal.append(&json!({"n": 2}), Durability::Written).await.unwrap_err();
    assert_eq!(fault.code, Code::Internal);
}

/// What the model does; `Compact` snapshots all numbers so far.
#[derive(Clone, Debug)]
enum Step {
    Append(String),
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![4 => "[a-z\"\\\\\n{}é]{0,12}".prop_map(Step::Append), 1 => Just(Step::Compact)];
    proptest::collection::vec(step, 1..14)
}

/// Snapshot, journal, and what had been appended by then.
type Image = (Option<Vec<u8>>, Vec<u8>, Vec<Value>);

/// The files after each step, as a crash would leave them.
fn images(steps: &[Step]) -> Vec<Image> {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (journal, _) = Journal::open(dir.path()).unwrap();
    let mut all = Vec::new();
    let mut images = vec![(None, Vec::new(), Vec::new())];
    for step in steps {
        match step {
            Step::Append(text) => {
                all.push(json!({"text": text}));
                runtime.block_on(journal.append(&json!({"text": text}), Durability::Written)).unwrap();
            }
            Step::Compact => runtime.block_on(journal.compact(&json!(all))).unwrap(),
        }
        let snapshot = fs::read(dir.path().join(disk::SNAPSHOT)).ok();
        images.push((snapshot, fs::read(dir.path().join(disk::JOURNAL)).unwrap(), all.clone()));
    }
    images
}

/// Everything a replay yields, as the model counts it.
fn history(meaning: &super::replay::Meaning) -> Vec<Value> {
    let mut all = meaning.snapshot.as_ref().map_or_else(Vec::new, |state| state.as_array().unwrap().clone());
    all.extend(meaning.records.iter().cloned());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Cut at every byte, the journal replays to a prefix that lacks at most the lines behind the cut.
    #[test]
    fn a_crash_at_any_byte_replays_to_a_prefix(steps in steps()) {
        let images = images(&steps);
        let (snapshot, journal, all) = images.last().unwrap();
        for cut in 0..=journal.len() {
            let meaning = replay(snapshot.as_deref(), &journal[..cut]);
            let history = history(&meaning);
            prop_assert!(all.starts_with(&history), "cut at {cut}");
            let whole_lines = journal[..cut].iter().filter(|byte| **byte == b'\n').count();
            prop_assert_eq!(meaning.records.len(), whole_lines);
            let torn = !matches!(meaning.rest, Rest::Nothing);
            prop_assert_eq!(torn, cut != 0 && journal[cut - 1] != b'\n');
        }
        prop_assert_eq!(&history(&replay(snapshot.as_deref(), journal)), all);
    }

    /// Between the new snapshot and the emptied journal, old records are still there, whole or partly: nothing is doubled, nothing lost.
    #[test]
    fn a_crash_in_the_middle_of_compaction_loses_and_doubles_nothing(steps in steps()) {
        let images = images(&steps);
        for pair in images.windows(2) {
            let ((_, old_journal, _), (snapshot, new_journal, all)) = (&pair[0], &pair[1]);
            if new_journal.is_empty() {
                for cut in 0..=old_journal.len() {
                    prop_assert_eq!(&history(&replay(snapshot.as_deref(), &old_journal[..cut])), all, "cut at {}", cut);
                }
            }
        }
    }

    /// A byte that changed on disk never changes a record: what replays is a prefix of what was written.
    #[test]
    fn a_flipped_byte_is_noticed(steps in steps(), at in any::<prop::sample::Index>(), flip in 1u8..=255) {
        let images = images(&steps);
        let (snapshot, journal, all) = images.last().unwrap();
        if !journal.is_empty() {
            let mut bytes = journal.clone();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let history = history(&replay(snapshot.as_deref(), &bytes));
            prop_assert!(all.starts_with(&history), "byte {at}");
        }
    }
}
