//! A person who types into a window of their own, on the same display as the browsers: as little of the X protocol as it
//! takes to have the keyboard's focus and to notice when it is gone.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use super::SOON;
use super::display::Display;

pub struct Typist {
    socket: UnixStream,
    window: u32,
    /// Whether the focus was ever taken away.
    lost: bool,
}

// Requests, events and masks as the protocol numbers them.
const CREATE_WINDOW: u8 = 1;
const MAP_WINDOW: u8 = 8;
const SET_INPUT_FOCUS: u8 = 42;
const GET_INPUT_FOCUS: u8 = 43;
const ERROR: u8 = 0;
const REPLY: u8 = 1;
const FOCUS_IN: u8 = 9;
const FOCUS_OUT: u8 = 10;
const VISIBILITY: u8 = 15;
const HEAR_VISIBILITY: u32 = 1 << 16;
const HEAR_FOCUS: u32 = 1 << 21;
const WITH_EVENTS: u32 = 1 << 11;
const INPUT_OUTPUT: u32 = 1;
const REVERT_TO_NONE: u8 = 0;

impl Typist {
    /// Opens a window there and takes the focus.
    pub fn at(display: &Display) -> Self {
        let address = SocketAddr::from_abstract_name(format!("/tmp/.X11-unix/X{}", display.name.trim_start_matches(':'))).unwrap();
        let mut socket = UnixStream::connect_addr(&address).unwrap();
        socket.set_read_timeout(Some(SOON)).unwrap();
        // Little-endian, version 11.0, no secret.
        socket.write_all(&[b'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let mut head = [0; 8];
        socket.read_exact(&mut head).unwrap();
        assert_eq!(head[0], 1, "the display lets us in");
        let mut about = vec![0; usize::from(u16::from_le_bytes([head[6], head[7]])) * 4];
        socket.read_exact(&mut about).unwrap();
        let number = |at: usize| u32::from_le_bytes(about[at..at + 4].try_into().unwrap());
        let vendor = usize::from(u16::from_le_bytes([about[16], about[17]])).next_multiple_of(4);
        let (window, root) = (number(4), number(32 + vendor + usize::from(about[21]) * 8));
        let mut typist = Self { socket, window, lost: false };
        let size = 200 | 200 << 16;
        typist.ask(CREATE_WINDOW, 0, &[window, root, 0, size, INPUT_OUTPUT << 16, 0, WITH_EVENTS, HEAR_VISIBILITY | HEAR_FOCUS]);
        typist.ask(MAP_WINDOW, 0, &[window]);
        typist.hear(VISIBILITY);
        typist.take_the_focus();
        typist
    }

    /// Waits until the focus is taken away, and takes it back.
    pub fn loses_the_focus_and_takes_it_back(&mut self) {
        if !self.lost {
            self.hear(FOCUS_OUT);
        }
        self.take_the_focus();
        self.lost = false;
    }

    fn take_the_focus(&mut self) {
        self.ask(SET_INPUT_FOCUS, REVERT_TO_NONE, &[self.window, 0]);
        self.hear(FOCUS_IN);
    }

    /// Whether the focus is here, and was all the time.
    pub fn kept_the_focus(&mut self) -> bool {
        self.ask(GET_INPUT_FOCUS, 0, &[]);
        let answer = self.hear(REPLY);
        let focus = u32::from_le_bytes(answer[8..12].try_into().unwrap());
        focus == self.window && !self.lost
    }

    fn ask(&mut self, request: u8, detail: u8, words: &[u32]) {
        let length = u16::try_from(words.len() + 1).unwrap().to_le_bytes();
        let mut bytes = vec![request, detail, length[0], length[1]];
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.socket.write_all(&bytes).unwrap();
    }

    /// The next message of this kind; what comes before it is only looked at.
    fn hear(&mut self, kind: u8) -> [u8; 32] {
        loop {
            let mut message = [0; 32];
            self.socket.read_exact(&mut message).unwrap();
            // The highest bit says that another client sent it.
            let heard = message[0] & 0x7f;
            assert_ne!(heard, ERROR, "the display refused: {message:?}");
            self.lost |= heard == FOCUS_OUT;
            if heard == kind {
                return message;
            }
        }
    }
}
