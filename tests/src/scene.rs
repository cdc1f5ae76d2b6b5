//! A gateway of the real binary that can be killed at any moment, before phones
//! that live on.
//!
//! The lab is in the test's process and serves its usbmuxd on a unix socket, so
//! that what the phones did can be asked whatever became of the gateway. Its
//! clock is the scenario's; the gateway's is the real one, so that no window of
//! it closes on a busy machine. To a lab on another clock it can say nothing of
//! a runner's age: whether one was restarted shows in real time only.

use std::fs::{self, File};
use std::path::PathBuf;

use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::{
    CommandReceipt, DeviceState, GetCommandRequest, GetDeviceRequest, ListDevicesRequest,
};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Lab, Phone, Scenario, Transport};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::foreign::WriteLock;
use crate::invariants::{OnPhone, OnRecord, Story, Told};
use crate::place::{Place, Said, Server, run};
use crate::plain::{Head, send_over};
use crate::{APP, Refusal, binary, connect, pause, soon};

/// A lab, and a gateway in a process of its own.
#[derive(Debug)]
pub struct Scene {
    /// The lab.
    pub lab: Lab,
    /// The gateway.
    pub server: Server,
    channel: Channel,
    ground: Ground,
}

/// What is left of a scene whose gateway is dead.
#[derive(Debug)]
pub struct Wreck {
    /// The lab.
    pub lab: Lab,
    ground: Ground,
}

/// Where a gateway lives.
#[derive(Debug)]
struct Ground {
    place: Place,
    /// What the configuration says besides.
    more: String,
    /// The ledger's head when it was last looked at.
    head: Option<String>,
}

/// A command that is under way, and what its caller is told.
#[derive(Debug)]
pub struct Call(JoinSet<Result<CommandReceipt, Status>>);

impl Call {
    /// What the caller was told.
    pub async fn told(mut self) -> Told {
        let told = soon("an answer", self.0.join_next()).await;
        told.expect("one call").expect("no panic").into()
    }
}

impl Scene {
    /// The lab that `scenario` describes, and a gateway that has found its
    /// phones.
    pub async fn start(scenario: Scenario) -> Self {
        Self::configured(scenario, "").await
    }

    /// The same with these lines in the gateway's configuration.
    pub async fn configured(scenario: Scenario, more: &str) -> Self {
        Self::before(Lab::start(scenario), more).await
    }

    /// The same before a lab that runs already.
    pub async fn before(lab: Lab, more: &str) -> Self {
        let place = Place::new();
        lab.serve_unix(place.usbmuxd())
            .await
            .expect("a unix socket");
        let ground = Ground {
            place,
            more: more.to_owned(),
            head: None,
        };
        Wreck { lab, ground }.restart().await
    }

    /// Kills the gateway with SIGKILL. Whatever it has left must be a ledger of
    /// which nothing is missing.
    pub async fn kill(self) -> Wreck {
        self.kill_then(async {}).await
    }

    /// The same under a lock, which is given back when the gateway is dead.
    pub async fn kill_under(self, lock: WriteLock) -> Wreck {
        self.kill_then(lock.release()).await
    }

    async fn kill_then(self, after: impl Future<Output = ()>) -> Wreck {
        let Self {
            lab,
            mut server,
            channel,
            mut ground,
        } = self;
        let child = &mut server.running.child;
        child.start_kill().expect("a process that runs");
        soon("the end", child.wait()).await.expect("a status");
        drop((channel, server));
        after.await;
        ground.verify().await;
        Wreck { lab, ground }
    }

    /// Ends the gateway properly, then the lab.
    pub async fn end(self) {
        let Self {
            lab,
            server,
            channel,
            mut ground,
        } = self;
        drop(channel);
        assert_eq!(server.end().await, Some(0));
        ground.verify().await;
        lab.shutdown().await;
    }

    /// The `n`th phone, by UDID.
    pub fn phone(&self, n: usize) -> Phone {
        self.lab.phones().swap_remove(n)
    }

    /// Where the ledger is.
    pub fn ledger_path(&self) -> PathBuf {
        self.ground.ledger_path()
    }

    /// Where its gateways' tokens are.
    pub fn tokens(&self) -> PathBuf {
        self.ground.place.tokens()
    }

    /// Waits until the gateway has logged these words.
    pub async fn complaint(&self, words: &str) {
        let log = self.ground.log_path();
        soon(&format!("a complaint of '{words}'"), async {
            while !fs::read_to_string(&log).expect("a log").contains(words) {
                pause().await;
            }
        })
        .await;
    }

    /// The gateway's process.
    pub fn pid(&self) -> u32 {
        self.server.running.child.id().expect("a process that runs")
    }

    /// The connection behind the clients.
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// A client of `LedgerService`.
    pub fn ledger(&self) -> LedgerServiceClient<Channel> {
        LedgerServiceClient::new(self.channel())
    }

    /// Sends a plain command of this kind.
    pub fn send(&self, phone: &Phone, kind: CommandKind, command_id: &str) -> Call {
        let mut call = JoinSet::new();
        call.spawn(send(self.channel(), phone, kind, command_id));
        Call(call)
    }

    /// Sends a plain tap.
    pub fn tap(&self, phone: &Phone, command_id: &str) -> Call {
        self.send(phone, CommandKind::Tap, command_id)
    }

    /// The device as the gateway sees it.
    pub async fn device(&self, phone: &Phone) -> fleetgate_proto::v1::Device {
        let device = phone.udid().to_string();
        let mut fleet = FleetServiceClient::new(self.channel());
        let found = fleet.get_device(GetDeviceRequest { device }).await;
        let device = found.expect("GetDevice").into_inner().device;
        device.expect("a device")
    }

    /// What the ledger holds of a command, or why it holds nothing.
    pub async fn look_up(&self, command_id: &str) -> Result<OnRecord, Refusal> {
        let request = GetCommandRequest {
            command_id: command_id.to_owned(),
        };
        match self.ledger().get_command(request).await {
            Ok(found) => Ok(found.into_inner().into()),
            Err(status) if status.code() == Code::NotFound => Err(status.into()),
            Err(status) => panic!("GetCommand: {status:?}"),
        }
    }

    /// What the ledger holds of a command once that has a fate, or if it is not
    /// on record.
    pub async fn settled(&self, command_id: &str) -> OnRecord {
        soon(&format!("a fate of {command_id}"), async {
            loop {
                match self.look_up(command_id).await {
                    Ok(found) if found.is_concluded() => return found,
                    Ok(_open) => pause().await,
                    Err(absent) => {
                        assert_eq!(absent.reason, "NEVER_SENT", "{absent:?}");
                        return OnRecord::default();
                    }
                }
            }
        })
        .await
    }

    /// All that is known of a command when it has a fate: it must hold
    /// together.
    pub async fn story(
        &self,
        phone: &Phone,
        kind: CommandKind,
        command_id: &str,
        told: Vec<Told>,
    ) -> Story {
        let on_record = self.settled(command_id).await;
        let story = Story {
            command_id: command_id.to_owned(),
            device: phone.udid().to_string(),
            kind,
            told,
            on_record,
            on_phone: OnPhone::of(&phone.report(), command_id),
        };
        assert_eq!(story.violations(), [""; 0], "{story:#?}");
        story
    }

    /// Waits until the gateway sees every phone that hangs on the lab by cable.
    async fn attached(&self) {
        let plugged = |phone: &Phone| phone.report().plugged.contains(&Transport::Usb);
        let phones = self.lab.phones();
        let wanted = phones.iter().filter(|phone| plugged(phone)).count();
        let mut fleet = FleetServiceClient::new(self.channel());
        soon("the fleet", async {
            loop {
                let request = ListDevicesRequest {
                    page_size: 1000,
                    ..ListDevicesRequest::default()
                };
                let listed = fleet.list_devices(request).await.expect("ListDevices");
                let devices = &listed.get_ref().devices;
                let attached = devices
                    .iter()
                    .filter(|device| device.state() != DeviceState::Detached && !device.stale);
                if attached.count() >= wanted {
                    return;
                }
                pause().await;
            }
        })
        .await;
    }
}

/// Sends a plain command of this kind over a channel.
pub fn send(
    channel: Channel,
    phone: &Phone,
    kind: CommandKind,
    command_id: &str,
) -> impl Future<Output = Result<CommandReceipt, Status>> + Send + 'static {
    let head = Head {
        device: phone.udid().to_string(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    send_over(AutomationServiceClient::new(channel), kind, head)
}

impl Wreck {
    /// The `n`th phone, by UDID.
    pub fn phone(&self, n: usize) -> Phone {
        self.lab.phones().swap_remove(n)
    }

    /// Starts another gateway on the same ledger and lab.
    pub async fn restart(self) -> Scene {
        let Self { lab, ground } = self;
        let mut serve = ground.place.serve_on(&ground.ledger_path(), &ground.more);
        serve.stderr(File::create(ground.log_path()).expect("a log"));
        let server = Server::start(&mut serve).await;
        let channel = connect(&server.url).await;
        let scene = Scene {
            lab,
            server,
            channel,
            ground,
        };
        scene.attached().await;
        scene
    }
}

impl Ground {
    fn ledger_path(&self) -> PathBuf {
        self.place.path("ledger.db")
    }

    /// What the latest gateway has to say.
    fn log_path(&self) -> PathBuf {
        self.place.path("gateway.log")
    }

    /// Asks the binary whether the ledger is what was written, and whether what
    /// was there the last time still is.
    async fn verify(&mut self) {
        let mut command = binary::command();
        command
            .args(["ledger", "verify", "-o", "json", "--path"])
            .arg(self.ledger_path());
        if let Some(head) = &self.head {
            command.args(["--known", head]);
        }
        let said: Said = run(&mut command, "").await;
        assert_eq!(said.code, 0, "{said:?}");
        let report = said.json();
        assert_eq!(report["intact"], true, "{report}");
        assert_eq!(report["known_compared"], self.head.is_some(), "{report}");
        let head = report["head"].as_str().expect("a head");
        self.head = Some(head.to_owned());
    }
}
