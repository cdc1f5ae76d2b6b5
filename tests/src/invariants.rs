//! What must be true of every command, whatever befell it, its caller, its
//! phone and its gateway.
//!
//! A [`Story`] is all that is known about one command when everything is over:
//! what its callers were told, what the ledger says, and what the phone saw and
//! did. [`Story::violations`] holds the words against the deeds. The promise is
//! written down here once more, apart from the code that keeps it:
//!
//! | said | had its effect | was read by a runner |
//! |---|---|---|
//! | nothing on record, `NOT_SENT` | never | never |
//! | `COMPLETED`, `COMPLETED_RESULT_LOST` | once | |
//! | `FAILED`, effect `NONE` | never | |
//! | `FAILED`, effect `UNKNOWN`; `UNKNOWN` | at most once | |
//! | anything | at most once | once, and once more for each `RUNNER_BUSY`, never beside another |
//!
//! A read has no effect, may be offered more than once, and may run again when
//! it is asked for again: nothing else is demanded of it.
//!
//! Each word of a fate's history must be true, not only the last: a correction
//! may make a fate known, and may not take anything back.

use fleetgate_proto::v1::{
    CommandReceipt, CommandRecord, Effect, Fate, FateChange, GetCommandResponse,
};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Arrival;
use tonic::Status;

use crate::{Refusal, plain};

pub use on_phone::{OnPhone, overtaking};

mod on_phone;

/// What one caller was told.
#[derive(Debug, Clone)]
pub enum Told {
    /// That it succeeded.
    Receipt(CommandReceipt),
    /// That it failed, with the facts.
    Refusal(Refusal),
    /// Nothing about the command.
    Nothing(String),
}

impl From<Result<CommandReceipt, Status>> for Told {
    fn from(result: Result<CommandReceipt, Status>) -> Self {
        match result {
            Ok(receipt) => Self::Receipt(receipt),
            Err(status) => {
                let words = format!("{status:?}");
                let refusal = Refusal::from(status);
                if refusal.meta("fate").is_empty() {
                    Self::Nothing(words)
                } else {
                    Self::Refusal(refusal)
                }
            }
        }
    }
}

/// A claim about a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word {
    fate: Fate,
    effect: Effect,
}

impl Told {
    /// The claim, if there is one.
    fn word(&self) -> Option<Word> {
        match self {
            Self::Receipt(receipt) => Some(Word {
                fate: receipt.fate(),
                effect: receipt.effect(),
            }),
            Self::Refusal(refusal) => {
                let fate = Fate::from_str_name(&format!("FATE_{}", refusal.meta("fate")));
                let effect = Effect::from_str_name(&format!("EFFECT_{}", refusal.meta("effect")));
                Some(Word {
                    fate: fate.expect("a fate of the API"),
                    effect: effect.expect("an effect of the API"),
                })
            }
            Self::Nothing(_) => None,
        }
    }

    /// True if this is only that the caller's time is up while the command goes
    /// on.
    pub fn goes_on(&self) -> bool {
        match self {
            Self::Refusal(refusal) => {
                refusal.reason == "DEADLINE_EXCEEDED" && refusal.meta("fate") == "UNKNOWN"
            }
            Self::Receipt(_) | Self::Nothing(_) => false,
        }
    }

    /// True if it is a success.
    pub fn succeeded(&self) -> bool {
        matches!(self, Self::Receipt(_))
    }
}

/// What the ledger holds of a command.
#[derive(Debug, Clone, Default)]
pub struct OnRecord {
    /// Its row.
    pub row: Option<CommandRecord>,
    /// All that was said about its fate.
    pub history: Vec<FateChange>,
}

impl From<GetCommandResponse> for OnRecord {
    fn from(response: GetCommandResponse) -> Self {
        let GetCommandResponse { command, history } = response;
        Self {
            row: command,
            history,
        }
    }
}

impl OnRecord {
    /// True once there is a fate.
    pub fn is_concluded(&self) -> bool {
        self.row
            .as_ref()
            .is_some_and(|row| row.fate() != Fate::Unspecified)
    }

    fn words(&self) -> Vec<Word> {
        let row = self.row.iter().map(|row| (row.fate(), row.effect()));
        let history = self.history.iter();
        let history = history.map(|change| (change.fate(), change.effect()));
        history
            .chain(row)
            .map(|(fate, effect)| Word { fate, effect })
            .collect()
    }
}

/// One command, when all is over.
#[derive(Debug, Clone)]
pub struct Story {
    /// Its id.
    pub command_id: String,
    /// The phone's canonical UDID.
    pub device: String,
    /// Which command.
    pub kind: CommandKind,
    /// What its callers were told.
    pub told: Vec<Told>,
    /// What the ledger holds.
    pub on_record: OnRecord,
    /// What the phone saw and did.
    pub on_phone: OnPhone,
}

impl Story {
    /// All that is wrong with it, in words.
    pub fn violations(&self) -> Vec<String> {
        let mut wrong = self.deeds();
        if !self.kind.is_mutation() {
            return wrong;
        }
        for word in self.on_record.words() {
            wrong.extend(self.against(word, "the ledger says"));
        }
        for told in self.told.iter().filter(|told| !self.is_superseded(told)) {
            if let Some(word) = told.word() {
                wrong.extend(self.against(word, "a caller was told"));
            }
            wrong.extend(self.not_on_record(told));
        }
        wrong.extend(self.record());
        wrong.sort();
        wrong.dedup();
        wrong
    }

    /// True if it was told of one call that it was not sent, and was true of
    /// that call: another may have been let in since.
    fn is_superseded(&self, told: &Told) -> bool {
        let unsent = |told: &Told| told.word().is_some_and(|word| word.fate == Fate::NotSent);
        unsent(told) && self.told.iter().any(|other| !unsent(other))
    }

    /// What no word could excuse.
    fn deeds(&self) -> Vec<String> {
        let (effects, arrivals) = (self.on_phone.effects.len(), self.on_phone.arrivals.len());
        let busy = self.on_phone.was_busy();
        let mut wrong = Vec::new();
        if !self.kind.is_mutation() {
            if effects > 0 {
                wrong.push(format!("it had an effect {effects} times, and is a read"));
            }
            return wrong;
        }
        if effects > 1 {
            wrong.push(format!("it had its effect {effects} times"));
        }
        if arrivals > 1 + busy {
            wrong.push(format!(
                "it was sent {arrivals} times, and declined as busy {busy} times"
            ));
        }
        if let Some(Arrival { beside, .. }) = self.on_phone.overtaking.first() {
            wrong.push(format!("it was sent while the runner had {beside} in hand"));
        }
        let other = |arrival: &&Arrival| arrival.kind != self.kind;
        if let Some(other) = self.on_phone.arrivals.iter().find(other) {
            wrong.push(format!("it was sent as {}", other.kind));
        }
        wrong
    }

    /// What speaks against a claim.
    fn against(&self, word: Word, who: &str) -> Vec<String> {
        let (effects, arrivals) = (self.on_phone.effects.len(), self.on_phone.arrivals.len());
        let Word { fate, effect } = word;
        let (holds, fits) = match fate {
            Fate::NotSent => (effects == 0 && arrivals == 0, effect == Effect::None),
            Fate::Completed | Fate::CompletedResultLost => {
                (effects == 1, effect == Effect::Applied)
            }
            Fate::Failed => (
                effect != Effect::None || effects == 0,
                matches!(effect, Effect::None | Effect::Unknown),
            ),
            Fate::Unknown => (true, effect == Effect::Unknown),
            // That there must be a fate in the end is said elsewhere.
            Fate::Unspecified => (true, effect == Effect::Unspecified),
        };
        let (fate, effect) = (fate.as_str_name(), effect.as_str_name());
        let mut wrong = Vec::new();
        if !holds {
            wrong.push(format!(
                "{who} {fate}, {effect}; it was sent {arrivals} times and had its effect {effects} times"
            ));
        }
        if !fits {
            wrong.push(format!("{who} {fate} and {effect}, which cannot both be"));
        }
        wrong
    }

    /// What a caller was told and the ledger does not say.
    fn not_on_record(&self, told: &Told) -> Option<String> {
        let word = told.word()?;
        if told.goes_on() {
            return None;
        }
        if self.on_record.row.is_none() {
            // One that was never let in is not recorded.
            return (word.fate != Fate::NotSent)
                .then(|| format!("a caller was told {word:?}, and nothing is on record"));
        }
        let mut words = self.on_record.words();
        if let Told::Receipt(CommandReceipt { replayed: true, .. }) = told {
            // A reply that was too long to be kept cannot be told again.
            let lost = |word: &Word| Word {
                fate: Fate::CompletedResultLost,
                ..*word
            };
            let completed = words.iter().filter(|word| word.fate == Fate::Completed);
            let lost: Vec<_> = completed.map(lost).collect();
            words.extend(lost);
        }
        (!words.contains(&word))
            .then(|| format!("a caller was told {word:?}, the ledger says {words:?}"))
    }

    /// What is wrong with the record itself.
    fn record(&self) -> Vec<String> {
        let (effects, arrivals) = (self.on_phone.effects.len(), self.on_phone.arrivals.len());
        let Some(row) = &self.on_record.row else {
            return (arrivals + effects > 0)
                .then(|| format!("it was sent {arrivals} times, and nothing is on record"))
                .into_iter()
                .collect();
        };
        let mut wrong = Vec::new();
        if row.fate() == Fate::Unspecified {
            wrong.push("its intent has no fate".to_owned());
        }
        let about = (row.device.as_str(), row.kind());
        if about != (self.device.as_str(), plain::kind(self.kind)) {
            wrong.push(format!("the ledger has it as {about:?}"));
        }
        let offered = usize::try_from(row.attempts).unwrap_or(usize::MAX);
        let history = &self.on_record.history;
        // Who finds an intent without a fate cannot know how often it had been
        // offered.
        let left_open = history.first().is_some_and(|first| first.why.is_some());
        if !left_open && offered < arrivals {
            wrong.push(format!(
                "it was sent {arrivals} times, the ledger counts {offered}"
            ));
        }
        let told_twice = |pair: &[FateChange]| {
            let unknown = |change: &FateChange| change.fate() == Fate::Unknown;
            unknown(&pair[0]) && unknown(&pair[1]) && !pair[1].unknown_for_good
        };
        if history.windows(2).any(told_twice) {
            wrong.push("it was said twice that its fate is unknown".to_owned());
        }
        if let Some(last) = history.last()
            && (last.fate(), last.effect()) != (row.fate(), row.effect())
        {
            wrong.push("the row is not what was last said".to_owned());
        }
        let settled = |change: &FateChange| change.fate() != Fate::Unknown;
        let corrected = history.iter().rev().skip(1);
        if corrected.into_iter().any(settled) {
            wrong.push("a fate was taken back that was known".to_owned());
        }
        wrong
    }
}

#[cfg(test)]
mod tests;
