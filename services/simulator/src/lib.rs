//! A simulated device lab: a usbmuxd, the phones that hang on it, and on each
//! phone an automation runner and an app to automate.
//!
//! ```text
//!   gateway ──▶ usbmuxd ──Connect──▶ runner ──▶ screen
//!   (or any     numbers, events      framing,   apps, lists, texts,
//!    client)                         journal,   a picture
//!                                    queue, gate
//!      tests, control API ──▶ faults, plugs, app states
//!                         ◀── effects, arrivals, what the screen shows
//! ```
//!
//! It is what tests, demos and benchmarks run against, and what someone
//! without a phone starts with. Two things make it worth that:
//!
//! - It is **faithful**. It implements the server's side of the usbmuxd and the
//!   runner protocol in full, the rules between the lines included: the journal
//!   of 64 ids and its touch order, the watchdog gate, the re-fronting of
//!   backgrounded apps, the byte order of ports. It shares its codecs with the
//!   gateway, so its own tests speak to it in bytes written by hand.
//! - It is **observable**. What a runner answers and what really happened are
//!   two things. [`Phone::effects`] says what landed on the screen, under which
//!   command id, and [`Phone::screen`] what came of it.
//!
//! A phone can be without a runner until somebody [launches](launch) one: a
//! process in the place of `xcodebuild`, with which the runner lives and ends.
//!
//! What goes wrong is data: a [`Fault`] in a [`Scenario`], or queued on a
//! [`Phone`] while the lab runs, a [`LaunchFault`] of its launches, an
//! [`Oddity`] of usbmuxd or a [`Stray`] that it announces. There is no test-only
//! code path.
//!
//! Time is tokio's, at the scenario's scale. Over [`Lab::connect`] all of it
//! works on a paused clock; with real sockets use the real clock and a small
//! `time_scale`.
//!
//! # Example
//!
//! A tap whose reply is lost happened all the same:
//!
//! ```
//! use fleetgate_simulator::{Fault, Injection, Lab, Scenario};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use fleetgate_usbmux::{Client, MuxDeviceId, Port, Request};
//!
//! let lab = Lab::start(Scenario::fleet(1));
//! let phone = lab.phones().remove(0);
//! phone.fault(Fault::from(Injection::ReplyLostAfterExecution));
//!
//! let mut pipe = lab.connect();
//! let connect = Request::Connect { device: MuxDeviceId(1), port: Port::new(8100)? };
//! pipe.write_all(&connect.encode(&Client::new("docs", "1"), 1)?).await?;
//! let tap = r#"{"command":"tap","commandId":"t1","appBundleId":"com.example.settings","x":9,"y":9}"#;
//! let post = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{tap}", tap.len());
//! pipe.write_all(post.as_bytes()).await?;
//!
//! // usbmuxd's answer to the Connect comes, and none to the tap.
//! let mut answer = Vec::new();
//! pipe.read_to_end(&mut answer).await?;
//! assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"));
//! assert_eq!(phone.effects_of(&"t1".parse()?), 1);
//! lab.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod clock;
pub mod control;
mod fault;
mod gate;
mod journal;
mod lab;
pub mod launch;
mod load;
mod lockdown;
mod mux;
mod oddity;
mod packet;
mod phone;
mod report;
mod runner;
pub mod scenario;
mod socket;
mod stray;
mod sync;
pub mod ui;
mod usbmuxd;

pub use fault::{Fault, Injection, InvalidFault};
pub use lab::Lab;
pub use launch::{LaunchEvent, LaunchFault, LaunchRequest, Mishap};
pub use load::LoadReport;
pub use lockdown::Lockdown;
pub use mux::{Ids, Replug};
pub use oddity::{Asked, Odd, Oddity};
pub use phone::Phone;
pub use report::{
    Arrival, Connects, Decline, ObservedEffect, PhoneReport, RunnerReport, Transport,
};
pub use scenario::{PhoneSpec, Scenario, ScenarioError};
pub use stray::{EntryKey, Stray};
