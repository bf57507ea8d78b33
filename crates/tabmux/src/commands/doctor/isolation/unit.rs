//! The units of isolation (C12) and what each promises.

/// What keeps a session apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Unit {
    Context,
    Window,
    Tab,
    Browser,
}

/// How far a thing belongs to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is the session's own whatever the unit is.
    BySession,
    /// It belongs to the profile, which sessions of some units share on purpose: they are logged in alike.
    ByProfile,
}

impl Unit {
    pub(in crate::commands) const ALL: [Self; 4] = [Self::Context, Self::Window, Self::Tab, Self::Browser];

    /// The unit of that name, or all of them for `all`.
    pub(in crate::commands) fn chosen(name: &str) -> Vec<Self> {
        Self::ALL.into_iter().filter(|unit| name == "all" || unit.name() == name).collect()
    }

    pub(in crate::commands) fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Window => "window",
            Self::Tab => "tab",
            Self::Browser => "browser",
        }
    }

    /// What it promises, for people.
    pub(super) fn promise(self) -> &'static str {
        match self {
            Self::Context => "a profile of its own in the shared browser: everything is kept apart",
            Self::Window => "windows of its own in the shared profile: logins are shared, pages and news are not",
            Self::Tab => "tabs of its own in the shared profile: logins are shared, pages and news are not",
            Self::Browser => "a browser process of its own: everything is kept apart",
        }
    }

    pub(super) fn promises(self, kept: Kept) -> bool {
        match kept {
            Kept::BySession => true,
            Kept::ByProfile => matches!(self, Self::Context | Self::Browser),
        }
    }
}
