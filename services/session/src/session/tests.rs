//! The whole stack, between a mocked phone and a recorder that remembers.
//!
//! Time is paused and moves only when everybody waits, so that what happens at
//! a deadline happens exactly then.

use fleetgate_runner::{
    Command, CommandKind, DeviceCommand, JournalState, Point, Reply, RunnerState, RunnerStatus,
};
use tokio_test::task::{Spawn, spawn};
use tower_test::mock::{Handle, SendResponse};

use super::*;
use crate::testing::{Ledger, device, done, entry, envelope, id, job, journal, mocked, sent};

mod attach;
mod condition;
mod deadline;
mod echo;
mod hold;
mod leave;
mod lost;
mod order;
mod pause;
mod reconcile;
mod resolve;
mod restart;
mod shutdown;
mod vitals;
mod wedged;

type Call = Spawn<BoxFuture<'static, Result<Success, Failed>>>;

struct Rig {
    session: Session,
    task: SessionTask,
    phone: Handle<Exchange, Envelope>,
    ledger: Ledger,
}

impl Rig {
    fn new() -> Self {
        Self::with(SessionConfig::default())
    }

    fn with(config: SessionConfig) -> Self {
        Self::after(config, Vec::new())
    }

    /// A session after another that left these behind.
    fn after(config: SessionConfig, unsettled: Vec<Unsettled>) -> Self {
        let (exchange, phone) = mocked();
        let ledger = Ledger::new();
        let (session, task) = Session::spawn(device(), exchange, ledger.clone(), config, unsettled);
        Self {
            session,
            task,
            phone,
            ledger,
        }
    }

    /// Hands a job in; the call need not be awaited for it to go on.
    fn call(&mut self, job: Job) -> Call {
        let mut call = spawn(self.session.call(job));
        assert!(
            call.poll().is_pending(),
            "answered before the lane could see it"
        );
        call
    }

    /// The next request, its first byte written; checks which command it is.
    async fn sent(&mut self, name: &str) -> SendResponse<Envelope> {
        let (exchange, reply) = sent(&mut self.phone).await;
        assert_eq!(exchange.request.command_id, Some(id(name)));
        reply
    }

    /// The next request, which must be of this kind.
    async fn sent_kind(&mut self, kind: CommandKind) -> (Exchange, SendResponse<Envelope>) {
        let (exchange, reply) = sent(&mut self.phone).await;
        assert_eq!(exchange.request.command.kind(), kind);
        (exchange, reply)
    }

    /// Lets every task run until all of them wait, which takes no time.
    async fn settle(&mut self) {
        tokio::time::sleep(Duration::from_nanos(1)).await;
    }

    /// Checks that no command reaches the phone for a long time. Meanwhile the
    /// runner, long up and idle, answers that it knows of nothing.
    async fn assert_quiet(&mut self) {
        let quiet = tokio::time::sleep(Duration::from_secs(3600));
        tokio::pin!(quiet);
        loop {
            let (exchange, reply) = tokio::select! {
                () = &mut quiet => return,
                next = sent(&mut self.phone) => next,
            };
            reply.send_response(knows_nothing(&exchange));
        }
    }

    /// Answers the next request, which must ask for this command's entry.
    async fn tell(&mut self, name: &str, state: JournalState) {
        let (exchange, reply) = self.sent_kind(CommandKind::CommandStatus).await;
        let of = id(name);
        let question = Command::Device(DeviceCommand::CommandStatus { of });
        assert_eq!(exchange.request.command, question);
        reply.send_response(journal(entry(name, state)));
    }

    /// Answers the next request, which must ask for the runner's health.
    async fn tell_uptime(&mut self, uptime: Duration) {
        let (_, reply) = self.sent_kind(CommandKind::Status).await;
        reply.send_response(health(uptime, RunnerState::Idle));
    }

    /// A command that is under way until the phone answers.
    async fn occupy(
        &mut self,
        name: &str,
        command: Command<Point>,
    ) -> (Call, SendResponse<Envelope>) {
        let call = self.call(job(name, command));
        let reply = self.sent(name).await;
        (call, reply)
    }
}

/// What a runner says that has long been up, is idle and has an empty journal.
fn knows_nothing(question: &Exchange) -> Envelope {
    match &question.request.command {
        Command::Device(DeviceCommand::CommandStatus { of }) => {
            journal(entry(of.as_str(), JournalState::NotAccepted))
        }
        Command::Device(DeviceCommand::Status) => health(A_DAY, RunnerState::Idle),
        command @ (Command::App(_) | Command::Device(_)) => panic!("sent as well: {command:?}"),
    }
}

const A_DAY: Duration = Duration::from_hours(24);

fn health(uptime: Duration, state: RunnerState) -> Envelope {
    envelope(Ok(Reply::Status(RunnerStatus {
        uptime,
        state,
        suppressed_issues: 0,
        recorded_failures: 0,
    })))
}

#[tokio::test(start_paused = true)]
async fn a_tap_is_completed_with_a_receipt_and_its_fate_is_on_record() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", crate::testing::tap()));
    let reply = rig.sent("c-1").await;
    assert_eq!(
        rig.ledger.lines(),
        ["intent c-1"],
        "the intent came before the first byte"
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    reply.send_response(done());
    let Success { receipt, .. } = call.await.unwrap();
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
    assert_eq!(receipt.command_id, id("c-1"));
    assert_eq!(receipt.kind, CommandKind::Tap);
    assert_eq!(
        (receipt.fate, receipt.effect),
        (Fate::Completed, Effect::Applied)
    );
    assert_eq!((receipt.attempts, receipt.recovered), (1, false));
    assert_eq!(receipt.queue_wait, Duration::ZERO);
    assert_eq!(receipt.device_time.as_secs(), 2);
}
