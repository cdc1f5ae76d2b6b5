//! The end of a round: the ledger is walked and held against the phones and
//! what callers were told.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use fleetgate_proto::v1::{
    CommandRecord, Fate, GetCommandRequest, ListCommandsRequest, ListCommandsResponse,
    ListDevicesRequest,
};
use fleetgate_runner::Budgets;
use fleetgate_simulator::PhoneReport;
use fleetgate_tests::invariants::{OnPhone, OnRecord, Story, overtaking};
use fleetgate_tests::{PATIENCE, Rig, pause, soon};
use tokio::time::Instant;
use tonic::Code;

use crate::world::{Sent, TIME_SCALE, World, has_a_story};

/// What was judged.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    commands: usize,
    fates: BTreeMap<String, usize>,
    effects: usize,
    questions: usize,
    declines: usize,
}

impl AddAssign for Judgement {
    fn add_assign(&mut self, other: Self) {
        self.commands += other.commands;
        self.effects += other.effects;
        self.questions += other.questions;
        self.declines += other.declines;
        for (fate, count) in other.fates {
            *self.fates.entry(fate).or_default() += count;
        }
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            commands,
            fates,
            effects,
            questions,
            declines,
        } = self;
        write!(
            f,
            "{commands} commands, {effects} effects, {declines} turned away, \
             {questions} questions to journals, fates on record {fates:?}"
        )
    }
}

/// A broken promise.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) phone: usize,
    pub(crate) command: String,
    pub(crate) words: String,
}

/// Judges everything that was sent, by phone.
pub(crate) async fn judge(
    world: &World,
    sent: BTreeMap<usize, Vec<Sent>>,
) -> Result<Judgement, Vec<Broken>> {
    let rig = world.rig().await;
    let mut broken = Vec::new();
    soon("the end of all lanes", lanes_are_empty(&rig)).await;
    if let Some(open) = still_open(&rig).await {
        broken.push(Broken {
            phone: 0,
            command: open.command_id.clone(),
            words: format!("after {PATIENCE:?} there is no fate: {open:#?}"),
        });
    }
    let mut rows = BTreeMap::new();
    for row in walk(&rig, &[]).await {
        if let Some(twin) = rows.insert(row.command_id.clone(), row) {
            panic!("the ledger tells of a command twice: {twin:?}");
        }
    }
    let mut judgement = Judgement::default();
    for (phone, sent) in sent {
        let report = world.phones[phone].report();
        let mut known = Known::default();
        judgement.declines += report.declines.len();
        for one in sent {
            judgement.commands += 1;
            if !has_a_story(one.command.kind) {
                continue;
            }
            let row = rows.remove(&one.command.id);
            let story = tell(&rig, &report, one).await;
            judgement.effects += story.on_phone.effects.len();
            judgement.questions += story.on_phone.questions;
            let fate = row.as_ref().map_or("none", |row| row.fate().as_str_name());
            *judgement.fates.entry(fate.to_owned()).or_default() += 1;
            known.count(&story.on_phone);
            let mut wrong = story.violations();
            // What was unknown may have become known since the walk.
            let settled = row.as_ref().is_none_or(|row| row.fate() != Fate::Unknown);
            if settled && story.on_record.row != row {
                wrong.push(format!(
                    "alone it is told of in another way than in the list: {row:?}"
                ));
            }
            if !wrong.is_empty() {
                broken.push(Broken {
                    phone,
                    command: story.command_id.clone(),
                    words: format!("{}\n{story:#?}", wrong.join("\n")),
                });
            }
        }
        broken.extend(known.against(phone, &report));
    }
    // A status is on record under an id that the gateway gave it.
    rows.retain(|_, row| !is_status(row));
    for row in rows.into_values() {
        broken.push(Broken {
            phone: 0,
            command: row.command_id.clone(),
            words: format!("nobody sent what is on record: {row:?}"),
        });
    }
    if broken.is_empty() {
        Ok(judgement)
    } else {
        Err(broken)
    }
}

fn is_status(row: &CommandRecord) -> bool {
    use fleetgate_proto::v1::CommandKind;
    row.kind() == CommandKind::Status
}

/// What stories account for of a phone's deeds.
#[derive(Debug, Default)]
struct Known {
    effects: usize,
    arrivals: usize,
}

impl Known {
    fn count(&mut self, on_phone: &OnPhone) {
        self.effects += on_phone.effects.len();
        self.arrivals += on_phone.arrivals.len();
    }

    /// What a phone did beyond that, or too much at once.
    fn against(&self, phone: usize, report: &PhoneReport) -> Vec<Broken> {
        let early = overtaking(report, &Budgets::scaled(TIME_SCALE));
        let effects = report.effects.len();
        let arrivals = report
            .arrivals
            .iter()
            .filter(|arrival| has_a_story(arrival.kind))
            .count();
        let rules = [
            (
                early.is_empty(),
                format!("these came while another was in hand: {early:#?}"),
            ),
            (
                effects == self.effects,
                format!(
                    "it did {effects} things, of which {} were asked",
                    self.effects
                ),
            ),
            (
                arrivals == self.arrivals,
                format!(
                    "it read {arrivals} requests, of which {} are known",
                    self.arrivals
                ),
            ),
        ];
        rules
            .into_iter()
            .filter(|(holds, _)| !holds)
            .map(|(_, words)| Broken {
                phone,
                command: String::new(),
                words: format!("phone {phone}: {words}"),
            })
            .collect()
    }
}

/// Waits until nothing is queued or in flight. What a caller left behind may
/// have no row yet, and gets one while the ledger is walked.
async fn lanes_are_empty(rig: &Rig) {
    loop {
        let request = ListDevicesRequest {
            page_size: 1000,
            ..ListDevicesRequest::default()
        };
        let listed = rig.fleet().list_devices(request).await.unwrap();
        let mut devices = listed.get_ref().devices.iter();
        if devices.all(|phone| phone.queued_commands == 0 && phone.command_in_flight.is_none()) {
            return;
        }
        pause().await;
    }
}

/// The first command that still has no fate when it should.
async fn still_open(rig: &Rig) -> Option<CommandRecord> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let open = walk(rig, &[Fate::Unspecified]).await.into_iter().next()?;
        if Instant::now() > give_up {
            return Some(open);
        }
        pause().await;
    }
}

/// Every command with one of these fates, or with any.
async fn walk(rig: &Rig, fates: &[Fate]) -> Vec<CommandRecord> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListCommandsRequest {
            fates: fates.iter().map(|fate| i32::from(*fate)).collect(),
            page_size: 500,
            page_token,
            ..ListCommandsRequest::default()
        };
        let page = rig.ledger().list_commands(request).await.unwrap();
        let ListCommandsResponse {
            commands,
            next_page_token,
        } = page.into_inner();
        all.extend(commands);
        if next_page_token.is_empty() {
            return all;
        }
        page_token = next_page_token;
    }
}

/// All that is known of a command.
async fn tell(rig: &Rig, report: &PhoneReport, sent: Sent) -> Story {
    let Sent { command, told } = sent;
    let request = GetCommandRequest {
        command_id: command.id.clone(),
    };
    let on_record = match rig.ledger().get_command(request).await {
        Ok(found) => OnRecord::from(found.into_inner()),
        Err(status) if status.code() == Code::NotFound => OnRecord::default(),
        Err(status) => panic!("GetCommand: {status:?}"),
    };
    Story {
        device: report.udid.clone(),
        on_phone: OnPhone::timed(report, &command.id, &Budgets::scaled(TIME_SCALE)),
        command_id: command.id,
        kind: command.kind,
        told,
        on_record,
    }
}
