//! Decides who owns which session and tab, and when each ends. Pure: no async, no I/O, no clock (time is an
//! argument), no randomness (ids are arguments); what must happen outside comes back as effects.

mod caller;
mod fault;
mod grant;
mod ids;
mod registry;
mod session;
mod window;

pub use caller::{Caller, Identity, Leave, Link, OnLost, Party};
pub use fault::{Code, Fault, ways_out};
pub use grant::{CAPABILITY, Deed, Grant, GrantId, GrantKey, Right, Share, Touch, Uses};
pub use ids::{ClientId, Epoch, NotAnId, SessionId, TabId, TabNumber, Uuid};
pub use registry::{
    Admitted, Counts, Effect, Ended, House, Lane, Listed, LostTab, Minted, Open, Opened, Persist, Registry, Revoke, Rules, Shared, TAKEN,
    TabRef, check_name, foreign_tab,
};
pub use session::{CallId, Kind, Loss, Millis, Phase, Seat, Session, Tab};
pub use window::{Ground, Placement, Scoping, Spot, WindowId, WindowScope};
