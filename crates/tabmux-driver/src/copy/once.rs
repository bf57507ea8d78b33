//! One reading for many copies: whoever comes later, or at the same time, gets what the first one read.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::Source;
use crate::{Cookie, OriginStorage, Result};

/// Reads another source once. What failed is tried again by who asks next.
pub struct ReadOnce {
    source: Arc<dyn Source>,
    cookies: OnceCell<Vec<Cookie>>,
    origins: OnceCell<Vec<String>>,
    kept: Cells<OriginStorage>,
    framed: Cells<Vec<OriginStorage>>,
}

/// What was read of each origin.
type Cells<T> = Mutex<HashMap<String, Arc<OnceCell<T>>>>;

impl ReadOnce {
    pub fn of(source: Arc<dyn Source>) -> Self {
        Self { source, cookies: OnceCell::new(), origins: OnceCell::new(), kept: Mutex::default(), framed: Mutex::default() }
    }

    /// Whether its cookies have been read.
    pub fn has_cookies(&self) -> bool {
        self.cookies.initialized()
    }
}

#[async_trait]
impl Source for ReadOnce {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.cookies.get_or_try_init(|| self.source.cookies()).await.cloned()
    }

    async fn origins(&self) -> Result<Vec<String>> {
        self.origins.get_or_try_init(|| self.source.origins()).await.cloned()
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        cell(&self.kept, origin).get_or_try_init(|| self.source.kept(origin)).await.cloned()
    }

    async fn framed(&self, origin: &str) -> Result<Vec<OriginStorage>> {
        cell(&self.framed, origin).get_or_try_init(|| self.source.framed(origin)).await.cloned()
    }
}

fn cell<T>(cells: &Cells<T>, origin: &str) -> Arc<OnceCell<T>> {
    let mut cells = cells.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(cells.entry(origin.to_owned()).or_insert_with(|| Arc::new(OnceCell::new())))
}

impl fmt::Debug for ReadOnce {
    /// Its values are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnce").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::DriverError;

    /// Counts how often it is read, and fails at first.
    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    #[async_trait]
    impl Source for Counted {
        async fn cookies(&self) -> Result<Vec<Cookie>> {
            tokio::task::yield_now().await;
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Err(DriverError::PageGone),
                _ => Ok(vec![Cookie { name: "a".into(), ..Cookie::default() }]),
            }
        }

        async fn origins(&self) -> Result<Vec<String>> {
            Ok(Vec::new())
        }

        async fn kept(&self, origin: &str) -> Result<OriginStorage> {
            tokio::task::yield_now().await;
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(OriginStorage { origin: origin.into(), ..OriginStorage::default() })
        }
    }

    /// S3.3
    #[tokio::test]
    async fn many_who_read_at_once_share_one_reading() {
        let counted = Arc::new(Counted::default());
        let once = ReadOnce::of(Arc::clone(&counted) as Arc<dyn Source>);
        assert_eq!(once.cookies().await, Err(DriverError::PageGone));
        let (one, two, three) = tokio::join!(once.cookies(), once.cookies(), once.cookies());
        assert!(one.is_ok() && one == two && two == three);
        assert_eq!(counted.0.load(Ordering::SeqCst), 2, "what failed was read again, and then once");
        let (here, there, again) = tokio::join!(once.kept("https://a.test"), once.kept("https://b.test"), once.kept("https://a.test"));
        assert!(here == again && here != there);
        assert_eq!(counted.0.load(Ordering::SeqCst), 4);
    }
}
