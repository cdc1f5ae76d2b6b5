//! Callers on every phone, and the judgement of what they were told.

use std::collections::BTreeMap;
use std::time::Duration;

use fleetgate_proto::v1::{CommandRecord, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Phone;
use fleetgate_tests::invariants::Told;
use fleetgate_tests::scene::{Scene, send};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

const KINDS: [CommandKind; 4] = [
    CommandKind::Tap,
    CommandKind::Button,
    CommandKind::Drag,
    CommandKind::Snapshot,
];

/// How long a caller rests between two commands.
const REST: Duration = Duration::from_millis(200);

/// One command of a round.
#[derive(Debug)]
pub(crate) struct Sent {
    phone: Phone,
    kind: CommandKind,
    id: String,
    told: Told,
}

/// One caller for each phone.
#[derive(Debug)]
pub(crate) struct Load {
    stop: CancellationToken,
    callers: JoinSet<Vec<Sent>>,
}

impl Load {
    pub(crate) fn start(scene: &Scene, round: u32) -> Self {
        let (stop, mut callers) = (CancellationToken::new(), JoinSet::new());
        for (n, phone) in scene.lab.phones().into_iter().enumerate() {
            let name = format!("r{round}-p{n}");
            callers.spawn(call(scene.channel(), phone, name, stop.clone()));
        }
        Self { stop, callers }
    }

    /// Sends nothing more; gives all that was sent, once it was answered.
    pub(crate) async fn end(self) -> Vec<Sent> {
        self.stop.cancel();
        self.callers
            .join_all()
            .await
            .into_iter()
            .flatten()
            .collect()
    }
}

async fn call(channel: Channel, phone: Phone, name: String, stop: CancellationToken) -> Vec<Sent> {
    let mut sent = Vec::new();
    while !stop.is_cancelled() {
        let id = format!("{name}-{}", sent.len());
        let kind = KINDS[sent.len() % KINDS.len()];
        let told = Told::from(send(channel.clone(), &phone, kind, &id).await);
        let phone = phone.clone();
        sent.push(Sent {
            phone,
            kind,
            id,
            told,
        });
        sleep(REST).await;
    }
    sent
}

/// Holds every command against its record and its phone; says how many there
/// were of each fate.
pub(crate) async fn judge(scene: &Scene, sent: Vec<Sent>) -> (usize, BTreeMap<String, usize>) {
    let commands = sent.len();
    let mut fates = BTreeMap::new();
    for command in sent {
        let Sent {
            phone,
            kind,
            id,
            told,
        } = command;
        let story = scene.story(&phone, kind, &id, vec![told]).await;
        let row = story.on_record.row.as_ref();
        let fate = row.map_or(Fate::Unspecified, CommandRecord::fate);
        let word = fate.as_str_name().trim_start_matches("FATE_").to_owned();
        *fates.entry(word).or_default() += 1;
    }
    (commands, fates)
}
