//! One cell: one mutation, one row's trouble, one kind of caller, on a phone of
//! its own.

use std::time::Duration;

use fleetgate_proto::v1::{CommandReceipt, GetCommandRequest};
use fleetgate_runner::{Budgets, CommandKind};
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Fault, Lab, Phone, PhoneReport};
use fleetgate_tests::bare::Bare;
use fleetgate_tests::invariants::{OnPhone, OnRecord, Story, Told};
use fleetgate_tests::plain::{self, Head};
use fleetgate_tests::{APP, PATIENCE, Rig, lane, mend, screen, soon};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout};
use tonic::{Code, Status};

use crate::TIME_SCALE;
use crate::faults::Stage;
use crate::rows::{Hand, Row, SLOW};

/// How long a call may take to be seen on the phone before its caller goes on.
const SOON: Duration = Duration::from_millis(250);

/// The deadline of the caller that runs out of time: within [`SLOW`].
const TIMEOUT: &str = "100m";

/// What the one who called does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Stays,
    Cancels,
    RunsOutOfTime,
    LosesConnection,
}

impl Caller {
    pub(crate) const ALL: [Self; 4] = [
        Self::Stays,
        Self::Cancels,
        Self::RunsOutOfTime,
        Self::LosesConnection,
    ];
}

type Call = Result<CommandReceipt, Status>;

/// One cell.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) kind: CommandKind,
    pub(crate) caller: Caller,
    pub(crate) phone: Phone,
    /// Everything that was sent to the phone: the command itself first.
    sent: Vec<(String, CommandKind, Vec<Told>)>,
    client: Option<Bare>,
    call: JoinSet<Call>,
    follower: JoinSet<Call>,
    wrong: Vec<String>,
}

fn told(joined: Option<Result<Call, JoinError>>) -> Told {
    match joined {
        Some(Ok(result)) => result.into(),
        Some(Err(left)) => Told::Nothing(left.to_string()),
        None => Told::Nothing("the call has been taken away".to_owned()),
    }
}

impl Cell {
    pub(crate) fn new(row: &Row, kind: CommandKind, caller: Caller, phone: Phone) -> Self {
        Self {
            name: format!("{kind} / {} / {caller:?}", row.name),
            kind,
            caller,
            phone,
            sent: Vec::new(),
            client: None,
            call: JoinSet::new(),
            follower: JoinSet::new(),
            wrong: Vec::new(),
        }
    }

    fn udid(&self) -> String {
        self.phone.udid().to_string()
    }

    fn id(&self, name: &str) -> String {
        format!("{name}-{}", self.udid())
    }

    fn head(&self, command_id: String) -> Head {
        Head {
            device: self.udid(),
            command_id: Some(command_id),
            lease: None,
            app_bundle_id: APP.to_owned(),
        }
    }

    /// Makes the phone ready, and then as the row has it.
    pub(crate) fn prepare(&self, row: &Row) {
        screen::focus(&self.phone);
        let mut faults = row.queue(self.kind);
        if self.caller != Caller::Stays && !row.strikes(Stage::Execution) {
            faults.push(Fault::from(SLOW).on(self.kind));
        }
        for fault in faults {
            assert_eq!(fault.check(), Ok(()), "{}", self.name);
            self.phone.fault(fault);
        }
        for hand in &row.before {
            self.act(hand);
        }
    }

    /// What a hand does to the phone; what it does to usbmuxd is done once for
    /// all cells.
    fn act(&self, hand: &Hand) {
        let phone = &self.phone;
        match hand {
            Hand::Replug => phone.replug(),
            Hand::Detach => phone.detach(),
            Hand::KillRunner => phone.kill_runner(),
            Hand::RestartRunner => phone.restart_runner(DEFAULT_PORT),
            Hand::MoveRunner => phone.restart_runner(DEFAULT_PORT + 1),
            Hand::Evict => phone.evict_from_journal(&self.id("cell").parse().unwrap()),
            Hand::Lock => phone.set_locked(true),
            Hand::LeaveApp => screen::leave(phone),
            Hand::QuitApp => screen::quit(phone),
            Hand::RestartUsbmuxd(_) | Hand::StopUsbmuxd | Hand::StallUsbmuxd | Hand::Odd(_) => {}
        }
    }

    /// Sends the command, and waits until the phone has it or it has ended.
    pub(crate) async fn send(&mut self, rig: &Rig, row: &Row) {
        let client = Bare::connect(rig).await;
        let id = self.id("cell");
        let deadline = (self.caller == Caller::RunsOutOfTime).then_some(TIMEOUT);
        let automation = client.automation(deadline);
        self.call.spawn(plain::send_over(
            automation,
            self.kind,
            self.head(id.clone()),
        ));
        self.client = Some(client);
        let connecting = row.strikes(Stage::Connection);
        let has_it = |report: &PhoneReport| {
            let connected = report.connects.usb + report.connects.network > 0;
            !OnPhone::of(report, &id).arrivals.is_empty() || connecting && connected
        };
        let ended = tokio::select! {
            _ = timeout(SOON, self.phone.wait_until(has_it)) => None,
            ended = self.call.join_next() => Some(told(ended)),
        };
        self.sent.push((id, self.kind, ended.into_iter().collect()));
        // Somebody waits behind it, so that a lane that lets go of it too early
        // is found out.
        let behind = self.head(self.id("behind"));
        let automation = rig.automation();
        self.follower
            .spawn(plain::send_over(automation, CommandKind::Tap, behind));
    }

    /// Does by hand what is done meanwhile.
    pub(crate) fn meddle(&self, row: &Row) {
        for hand in &row.meanwhile {
            self.act(hand);
        }
    }

    /// The caller does what it does, and learns what it can.
    pub(crate) async fn leave(&mut self) {
        let client = self.client.take();
        match self.caller {
            Caller::Stays | Caller::RunsOutOfTime => {}
            Caller::Cancels => self.call.abort_all(),
            Caller::LosesConnection => {
                if let Some(client) = client {
                    client.tear();
                }
            }
        }
        let answers = &mut self.sent[0].2;
        if answers.is_empty() {
            match timeout(PATIENCE, self.call.join_next()).await {
                Ok(joined) => answers.push(told(joined)),
                Err(_) => self.wrong.push("its caller waits for ever".to_owned()),
            }
        }
        let stayed = matches!(self.caller, Caller::Stays | Caller::RunsOutOfTime);
        if let (true, Some(Told::Nothing(words))) = (stayed, self.sent[0].2.first()) {
            let wrong = format!("its caller was told nothing about it: {words}");
            self.wrong.push(wrong);
        }
        let behind = timeout(PATIENCE, self.follower.join_next()).await;
        let answers = if let Ok(joined) = behind {
            vec![told(joined)]
        } else {
            let wrong = "the one behind it waits for ever";
            self.wrong.push(wrong.to_owned());
            Vec::new()
        };
        self.sent
            .push((self.id("behind"), CommandKind::Tap, answers));
    }

    /// Waits until the fates are on record and whatever goes on has ended.
    pub(crate) async fn settle(&mut self, rig: &Rig) {
        for at in 0..self.sent.len() {
            let id = self.sent[at].0.clone();
            self.concluded(rig, &id).await;
        }
        // What never ends is ended by the healing.
        let rest = rig.scaled(Duration::from_secs(60));
        drop(timeout(rest, self.phone.wait_until(mend::is_at_rest)).await);
    }

    /// Makes the phone whole again.
    pub(crate) fn heal(&self) {
        mend::heal(&self.phone);
    }

    /// Taps until one tap is completed.
    pub(crate) async fn probe(&mut self, rig: &Rig) {
        let give_up = Instant::now() + PATIENCE;
        for attempt in 1_u32.. {
            let id = self.id(&format!("probe-{attempt}"));
            let call = plain::send_over(rig.automation(), CommandKind::Tap, self.head(id.clone()));
            let answer = Told::from(soon("the answer to a probe", call).await);
            let works = answer.succeeded();
            self.sent.push((id, CommandKind::Tap, vec![answer]));
            if works {
                return;
            }
            if Instant::now() > give_up {
                self.wrong
                    .push("the lane is of no use afterwards".to_owned());
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Everything that is wrong, told in full; empty if nothing is.
    pub(crate) async fn verdict(mut self, rig: &Rig) -> Vec<String> {
        let report = self.phone.report();
        let mut stories = Vec::new();
        for (command_id, kind, told) in std::mem::take(&mut self.sent) {
            let story = Story {
                device: self.udid(),
                on_record: on_record(rig, &command_id).await,
                on_phone: OnPhone::timed(&report, &command_id, &Budgets::scaled(TIME_SCALE)),
                command_id,
                kind,
                told,
            };
            let wrong = story.violations();
            let of = |wrong| format!("{}: {wrong}", story.command_id);
            self.wrong.extend(wrong.into_iter().map(of));
            stories.push(story);
        }
        if !self.wrong.is_empty() {
            self.wrong.push(format!("{stories:#?}"));
        }
        self.wrong
    }

    /// Waits until a command has a fate on record, or provably never will.
    async fn concluded(&mut self, rig: &Rig, id: &str) {
        let give_up = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(5);
        while Instant::now() < give_up {
            let device = lane::device(rig, &self.udid()).await;
            let idle = device.queued_commands == 0 && device.command_in_flight.is_none();
            let found = on_record(rig, id).await;
            if found.is_concluded() || idle && found.row.is_none() {
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(80));
        }
        self.wrong
            .push(format!("{id} has no fate after {PATIENCE:?}"));
    }
}

/// What the ledger holds of a command.
async fn on_record(rig: &Rig, id: &str) -> OnRecord {
    let request = GetCommandRequest {
        command_id: id.to_owned(),
    };
    match rig.ledger().get_command(request).await {
        Ok(found) => found.into_inner().into(),
        Err(status) if status.code() == Code::NotFound => OnRecord::default(),
        Err(status) => panic!("GetCommand: {status:?}"),
    }
}

/// What the row does to usbmuxd, once for all cells.
pub(crate) fn act_on_usbmuxd(lab: &Lab, hands: &[Hand], cells: usize) {
    for hand in hands {
        match hand {
            Hand::RestartUsbmuxd(ids) => lab.start_usbmuxd(*ids),
            Hand::StopUsbmuxd => lab.stop_usbmuxd(),
            Hand::StallUsbmuxd => lab.stall_usbmuxd(true),
            Hand::Odd(oddity) => {
                let times = u32::try_from(cells).unwrap();
                lab.oddity(oddity.clone().times(times));
            }
            Hand::Replug
            | Hand::Detach
            | Hand::KillRunner
            | Hand::RestartRunner
            | Hand::MoveRunner
            | Hand::Evict
            | Hand::Lock
            | Hand::LeaveApp
            | Hand::QuitApp => {}
        }
    }
}
