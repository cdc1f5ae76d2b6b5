//! Signs and what follows from them.

use fleetgate_runner::{Effect, Fate};

use super::*;
use crate::testing::{codes_but_busy, screenshot, turn, verdict};

#[test]
fn a_verdict_is_a_sign_of_what_it_says_about_the_runner() {
    let sign = |code| {
        let failure = Failure::Runner(verdict(code).result.unwrap_err());
        let receipt = turn("c-1", screenshot()).receipt(Fate::Failed, Effect::None);
        Sign::of(&Err(Failed { receipt, failure }))
    };
    assert_eq!(sign(RunnerCode::RunnerBusy), Some(Sign::Busy));
    for code in codes_but_busy() {
        let expected = match &code {
            RunnerCode::CommandTimedOut => Some(Sign::Abandoned),
            RunnerCode::RunnerWedged => Some(Sign::Wedged),
            RunnerCode::InvalidRequest | RunnerCode::AppBundleIdRequired | RunnerCode::Other(_) => {
                None
            }
            RunnerCode::RunnerBusy
            | RunnerCode::AppNotAvailable
            | RunnerCode::AppBackgrounded
            | RunnerCode::TextInputNotFocused
            | RunnerCode::UnsupportedOperation
            | RunnerCode::XctestRecordedFailure
            | RunnerCode::SnapshotFailed
            | RunnerCode::CommandFailed => Some(Sign::Executed),
        };
        assert_eq!(sign(code.clone()), expected, "{code}");
    }
}
