//! What crosses the keeper's socket: lines of JSON, and with some of them descriptors. Small enough to fit any socket
//! buffer, so a keeper never waits to write one.
//!
//! A newer daemon claims what an older keeper keeps: fields may be added with `#[serde(default)]`, and none may go.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{About, Exit, Pipe};
use crate::launch::{Launch, LaunchError};

/// The first thing a keeper is told.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    Launch {
        launch: Launch,
        runtime_dir: PathBuf,
        profiles_dir: PathBuf,
        grace_ms: Option<u64>,
    },
    /// Keep a browser that lost its keeper; its [`Handles`] come along.
    Adopt {
        about: About,
        grace_ms: Option<u64>,
    },
}

/// What a keeper says to a claimant.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// It is yours; its [`Handles`] come along.
    Yours(Box<About>),
    /// Somebody else's.
    Claimed {
        pid: u32,
    },
    Failed(LaunchError),
    /// The last word.
    Exited {
        exit: Exit,
        words: String,
    },
}

/// The claimant has what it needs: from now on the grace time counts.
pub(super) const SETTLED: u8 = b's';
/// End the browser now.
pub(super) const END: u8 = b'e';

/// All that keeps a browser: our ends of its pipe, its stderr, and the process itself, which unlike a pid cannot be
/// mistaken for another.
#[derive(Debug)]
pub(super) struct Handles {
    pub(super) read: OwnedFd,
    pub(super) write: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) process: OwnedFd,
}

/// Lines and descriptors that have arrived.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

const MAX_LINE: usize = 64 << 10;
const MAX_DESCRIPTORS: usize = 4;

impl Handles {
    pub(super) fn borrow(&self) -> [BorrowedFd<'_>; MAX_DESCRIPTORS] {
        [self.read.as_fd(), self.write.as_fd(), self.stderr.as_fd(), self.process.as_fd()]
    }

    pub(super) fn pipe(&self) -> io::Result<Pipe> {
        Ok(Pipe { read: self.read.try_clone()?, write: self.write.try_clone()? })
    }
}

impl Inbox {
    /// Takes what is there; false at the end of the stream.
    pub(super) fn pull(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut chunk = [0; 4096];
        let received = recvmsg(socket, &mut [IoSliceMut::new(&mut chunk)], &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.bytes.extend_from_slice(&chunk[..received]);
        if self.bytes.len() > MAX_LINE || self.descriptors.len() > MAX_DESCRIPTORS {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "more than a keeper ever says"));
        }
        Ok(received > 0)
    }

    /// The next whole line.
    pub(super) fn line<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let line: Vec<_> = self.bytes.drain(..=end).collect();
        Ok(Some(serde_json::from_slice(&line)?))
    }

    /// The handles that came with the last line.
    pub(super) fn handles(&mut self) -> io::Result<Handles> {
        match <[OwnedFd; MAX_DESCRIPTORS]>::try_from(std::mem::take(&mut self.descriptors)) {
            Ok([read, write, stderr, process]) => Ok(Handles { read, write, stderr, process }),
            Err(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the browser's handles did not come along")),
        }
    }
}

/// Sends one line, with the handles or without.
pub(super) fn send(socket: BorrowedFd<'_>, line: &impl Serialize, handles: Option<&Handles>) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    let descriptors = handles.map(Handles::borrow);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if let Some(descriptors) = &descriptors {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "the space is made for as many");
    }
    let mut sent = sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    while sent < bytes.len() {
        sent += sendmsg(socket, &[IoSlice::new(&bytes[sent..])], &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?;
    }
    Ok(())
}
