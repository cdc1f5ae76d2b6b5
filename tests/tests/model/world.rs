//! A lab, a gateway that comes and goes, and the scripts that run against them.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_gateway::config::Synchronous;
use fleetgate_proto::v1::CommandReceipt;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::scenario::DEFAULT_PORT;
use fleetgate_simulator::{Ids, Phone, Scenario};
use fleetgate_tests::bare::Bare;
use fleetgate_tests::invariants::Told;
use fleetgate_tests::plain::{self, Head};
use fleetgate_tests::{APP, Rig, mend, screen, within};
use futures_util::future::join_all;
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::script::{Caller, Command, Hand, Step, Upheaval};

/// Longer than any command waits, restarts of the gateway included.
const FOR_EVER: Duration = Duration::from_secs(90);

/// Fifty times as fast as a phone.
pub(crate) const TIME_SCALE: f64 = 0.02;

/// A lab and its gateway.
#[derive(Debug)]
pub(crate) struct World {
    /// Of the script that is played in it.
    pub(crate) seed: u64,
    /// Taken away while the gateway restarts.
    rig: RwLock<Option<Rig>>,
    pub(crate) phones: Vec<Phone>,
}

/// A command that was sent, and what came of the calls.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) command: Command,
    pub(crate) told: Vec<Told>,
}

type Call = Result<CommandReceipt, Status>;

impl World {
    pub(crate) async fn new(seed: u64, phones: usize) -> Arc<Self> {
        let scenario = Scenario::fleet(u32::try_from(phones).unwrap()).scaled(TIME_SCALE);
        let rig = Rig::configured(scenario, |config| {
            // No power is cut here.
            config.ledger.synchronous = Synchronous::Normal;
        })
        .await;
        let phones = rig.lab.phones();
        phones.iter().for_each(screen::focus);
        Arc::new(Self {
            seed,
            rig: RwLock::new(Some(rig)),
            phones,
        })
    }

    /// The rig, as long as the gateway is not restarted.
    pub(crate) async fn rig(&self) -> RwLockReadGuard<'_, Rig> {
        let rig = self.in_time(FOR_EVER, "the rig", self.rig.read()).await;
        RwLockReadGuard::map(rig, |rig| rig.as_ref().expect("it is put back"))
    }

    /// Waits for something that must come within this time.
    pub(crate) async fn in_time<T>(
        &self,
        patience: Duration,
        what: &str,
        future: impl Future<Output = T>,
    ) -> T {
        let what = format!("FLEETGATE_MODEL_SEED={}: {what}", self.seed);
        within(patience, &what, future).await
    }

    /// Ends everything.
    pub(crate) async fn end(&self) {
        if let Some(rig) = self.rig.write().await.take() {
            self.in_time(FOR_EVER, "the end", rig.stop()).await;
        }
    }

    /// Runs a phone's script and gives all that was sent.
    pub(crate) async fn play(self: Arc<Self>, at: usize, script: Vec<Step>) -> Vec<Sent> {
        let phone = self.phones[at].clone();
        let (mut sent, mut aside) = (Vec::new(), JoinSet::new());
        for step in script {
            match step {
                Step::Send(command) => {
                    let aside_too = command.aside;
                    let sending = Arc::clone(&self).send(phone.udid().to_string(), command);
                    if aside_too {
                        aside.spawn(sending);
                    } else {
                        sent.push(sending.await);
                    }
                }
                Step::Fault(fault) => phone.fault(fault),
                Step::Hand(hand) => self.act(&phone, hand).await,
                Step::Wait(millis) => sleep(Duration::from_millis(millis)).await,
                Step::Heal => {
                    while let Some(done) = aside.join_next().await {
                        sent.push(done.unwrap());
                    }
                    let _gateway_stays = self.rig().await;
                    mend::heal(&phone);
                }
            }
        }
        sent
    }

    async fn act(&self, phone: &Phone, hand: Hand) {
        // A gateway that starts waits for the phones that are plugged in.
        let _gateway_stays = self.rig().await;
        match hand {
            Hand::Replug => phone.replug(),
            Hand::Detach => phone.detach(),
            Hand::Attach => phone.attach(),
            Hand::KillRunner => phone.kill_runner(),
            Hand::RestartRunner => phone.restart_runner(DEFAULT_PORT),
            Hand::MoveRunner => phone.restart_runner(DEFAULT_PORT + 1),
            Hand::Lock => phone.set_locked(true),
            Hand::LeaveApp => screen::leave(phone),
            Hand::QuitApp => screen::quit(phone),
        }
    }

    async fn send(self: Arc<Self>, device: String, command: Command) -> Sent {
        let told = match command.caller {
            Caller::Stays => vec![self.ask(&device, &command, None).await],
            Caller::AsksTwice => {
                let asks = [(), ()].map(|()| self.ask(&device, &command, None));
                join_all(asks).await
            }
            Caller::Leaves(millis) => vec![self.leave(&device, &command, millis).await],
            Caller::Returns(millis) => match self.leave(&device, &command, millis).await {
                left @ Told::Nothing(_) => vec![left, self.ask(&device, &command, None).await],
                answered @ (Told::Receipt(_) | Told::Refusal(_)) => vec![answered],
            },
            Caller::Hurries(millis) => {
                let deadline = format!("{millis}m");
                vec![self.ask(&device, &command, Some(deadline)).await]
            }
        };
        Sent { command, told }
    }

    /// Asks and waits for the answer.
    async fn ask(&self, device: &str, command: &Command, deadline: Option<String>) -> Told {
        let mut call = self.call(device, command, deadline).await;
        match timeout(FOR_EVER, call.join_next()).await {
            Ok(Some(Ok(result))) => result.into(),
            Ok(Some(Err(error))) => panic!("a call panicked: {error}"),
            Ok(None) | Err(_) => panic!("{command:?} to {device} waits for ever"),
        }
    }

    /// Asks, and goes away after a while.
    async fn leave(&self, device: &str, command: &Command, millis: u64) -> Told {
        let mut call = self.call(device, command, None).await;
        match timeout(Duration::from_millis(millis), call.join_next()).await {
            Ok(Some(Ok(result))) => result.into(),
            Ok(Some(Err(error))) => panic!("a call panicked: {error}"),
            Ok(None) | Err(_) => Told::Nothing("it went away".to_owned()),
        }
    }

    /// A call under way; it is cancelled when it is dropped.
    async fn call(
        &self,
        device: &str,
        command: &Command,
        deadline: Option<String>,
    ) -> JoinSet<Call> {
        let head = Head {
            device: device.to_owned(),
            command_id: Some(command.id.clone()),
            lease: None,
            app_bundle_id: APP.to_owned(),
        };
        let rig = self.rig().await;
        let mut call = JoinSet::new();
        if let Some(deadline) = deadline {
            // tonic's own client would end the call by itself.
            let client = Bare::connect(&rig).await;
            let kind = command.kind;
            call.spawn(async move {
                plain::send_over(client.automation(Some(&deadline)), kind, head).await
            });
        } else {
            call.spawn(plain::send_over(rig.automation(), command.kind, head));
        }
        call
    }

    /// Lets what befalls all phones befall them, until it is stopped between
    /// two such things.
    pub(crate) async fn shake(&self, upheavals: Vec<(u64, Upheaval)>, stop: CancellationToken) {
        for (millis, upheaval) in upheavals {
            let pause = sleep(Duration::from_millis(millis));
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
            match upheaval {
                Upheaval::RestartUsbmuxd(ids) => self.rig().await.lab.start_usbmuxd(ids),
                Upheaval::StopUsbmuxd(millis) => {
                    self.rig().await.lab.stop_usbmuxd();
                    sleep(Duration::from_millis(millis)).await;
                    self.calm().await;
                }
                Upheaval::StallUsbmuxd(millis) => {
                    self.rig().await.lab.stall_usbmuxd(true);
                    sleep(Duration::from_millis(millis)).await;
                    self.calm().await;
                }
                Upheaval::Odd(oddity) => self.rig().await.lab.oddity(oddity),
                Upheaval::RestartGateway => {
                    let free = self.rig.write();
                    let mut place = self.in_time(FOR_EVER, "the gateway's restart", free).await;
                    let rig = place.take().expect("it is put back");
                    let restart = rig.restart_gateway();
                    *place = Some(self.in_time(FOR_EVER, "another gateway", restart).await);
                }
            }
        }
    }

    /// Ends what an upheaval began.
    pub(crate) async fn calm(&self) {
        let rig = self.rig().await;
        rig.lab.stall_usbmuxd(false);
        rig.lab.start_usbmuxd(Ids::Fresh);
    }
}

/// True if there is anything to tell of such a command: a status has no id.
pub(crate) fn has_a_story(kind: CommandKind) -> bool {
    !kind.bypasses_queue()
}
