//! Short ways to write down what the tests are about.

use std::num::NonZeroU32;

use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, Command, Reply, Request, RunnerCode, RunnerError,
};
use serde_json::Value;

pub(crate) fn app(action: AppAction) -> Command {
    Command::App(AppCommand {
        bundle_id: "com.apple.Preferences".parse().unwrap(),
        action,
    })
}

pub(crate) fn at(x: f64, y: f64) -> AppPoint {
    AppPoint::new(x, y).unwrap()
}

pub(crate) fn taps(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

pub(crate) fn request(id: Option<&str>, command: Command) -> Request {
    Request {
        command_id: id.map(|id| id.parse().unwrap()),
        command,
    }
}

pub(crate) fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap()
}

pub(crate) fn done(message: &str) -> Reply {
    Reply::Done(message.to_owned())
}

pub(crate) fn failed(code: RunnerCode, message: &str, hint: Option<&str>) -> RunnerError {
    RunnerError {
        code,
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    }
}
