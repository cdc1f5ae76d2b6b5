//! A phone's keeper: the task that does what the phone's life asks for, and
//! tells it what happens.
//!
//! ```text
//!   usbmuxds, operators, configuration ─┐             ┌─► the lane held, or not
//!   the session's vitals ───────────────┤    step     ├─► the process started, ended
//!   the process ────────────────────────┼──► LIFE ────┼─► the runner asked
//!   answers, the lane's idleness ───────┤             ├─► its port
//!   the clock ──────────────────────────┘             └─► what is told of the phone
//! ```
//!
//! It decides nothing. It sleeps until something happens: a phone that is well
//! costs a question per interval and nothing else.
//!
//! Invariant: what a watcher is told of shows in every snapshot from then on.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::SystemTime;

use fleetgate_device::Facts;
use fleetgate_launch::LaunchSpec;
use fleetgate_ledger::Quarantine;
use fleetgate_session::{Pause, ProbeWindow, Session, Vitals};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::warn;

mod asking;
mod telling;

use super::child::{Child, Happened};
use super::ground::Ground;
use super::life::{Act, Heard, Input, Life, Plan, Process};
use super::phone::{Face, Order, Phone, Pulse, Sight};
use crate::config::LaunchWay;
use asking::{Asked, heard, until_idle};

type LookUp = (Option<bool>, Option<Facts>);

/// The keeper of one phone.
pub(super) struct Keeper {
    ground: Arc<Ground>,
    phone: Arc<Phone>,
    life: Life,
    face: Face,
    sight: watch::Receiver<Sight>,
    way: watch::Receiver<Option<LaunchWay>>,
    vitals: Option<watch::Receiver<Vitals>>,
    known: Vitals,
    pause: Option<Pause>,
    child: Child,
    /// The launch that is under way is one of so many.
    place: Option<OwnedSemaphorePermit>,
    question: Option<BoxFuture<'static, Asked>>,
    look_up: Option<BoxFuture<'static, LookUp>>,
    looked_up_at: Option<Sight>,
    /// What is on its way into the ledger.
    recording: Option<BoxFuture<'static, ()>>,
}

/// What happened.
enum Event {
    Close,
    Sight,
    Way,
    Order(Order),
    Vitals,
    Process(Happened),
    Answer(Asked),
    Idle(Option<Pause>),
    LookedUp(LookUp),
    Recorded,
    Tick,
}

impl Keeper {
    pub(super) fn new(ground: Arc<Ground>, phone: Arc<Phone>) -> Self {
        let quarantine = ground.settings.get(&phone.udid).quarantine;
        let (sight, mut way) = (phone.sight.subscribe(), phone.way.subscribe());
        let plan = plan(way.borrow_and_update().as_ref());
        let life = Life::new(
            Arc::clone(&ground.policy),
            plan,
            quarantine.map(|quarantine| quarantine.reason),
            super::ground::seed(&phone.udid),
            Instant::now(),
        );
        Self {
            face: phone.face(),
            ground,
            phone,
            life,
            sight,
            way,
            vitals: None,
            known: Vitals::default(),
            pause: None,
            child: Child::None,
            place: None,
            question: None,
            look_up: None,
            looked_up_at: None,
            recording: None,
        }
    }

    /// Keeps the phone until it is told to close, and what it launched has
    /// ended.
    pub(super) async fn run(mut self, close: CancellationToken) {
        let mut is_closing = false;
        self.attend();
        // Where the phone is may be known already.
        self.sight.mark_changed();
        loop {
            let event = tokio::select! {
                () = close.cancelled(), if !is_closing => Event::Close,
                event = self.next() => event,
            };
            is_closing |= matches!(event, Event::Close);
            self.take(event);
            if is_closing && matches!(self.child, Child::None) && self.recording.is_none() {
                return;
            }
        }
    }

    async fn next(&mut self) -> Event {
        let Self {
            ground,
            phone,
            life,
            sight,
            way,
            vitals,
            child,
            question,
            look_up,
            recording,
            ..
        } = self;
        let timer = OptionFuture::from(life.next_timer().map(sleep_until));
        let vitals = OptionFuture::from(vitals.as_mut().map(watch::Receiver::changed));
        let answer = OptionFuture::from(question.as_mut());
        let looked_up = OptionFuture::from(look_up.as_mut());
        let recorded = OptionFuture::from(recording.as_mut());
        let idle = life.awaits_idle().zip(phone.session.get());
        let idle =
            idle.map(|(idleness, session)| until_idle(&phone.udid, session, idleness, ground));
        tokio::select! {
            Ok(()) = sight.changed() => Event::Sight,
            Ok(()) = way.changed() => Event::Way,
            order = phone.ordered() => Event::Order(order),
            Some(Ok(())) = vitals => Event::Vitals,
            happened = child.next() => Event::Process(happened),
            Some(asked) = answer => {
                *question = None;
                Event::Answer(asked)
            }
            Some(pause) = OptionFuture::from(idle) => Event::Idle(pause),
            Some(found) = looked_up => {
                *look_up = None;
                Event::LookedUp(found)
            }
            Some(()) = recorded => {
                *recording = None;
                Event::Recorded
            }
            Some(()) = timer => Event::Tick,
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Close => self.step(Input::Close),
            Event::Sight => self.look(),
            Event::Way => {
                self.attend();
                let plan = plan(self.way.borrow_and_update().as_ref());
                self.step(Input::Plan(plan));
            }
            Event::Order(Order { force, reason }) => self.step(Input::Recycle { force, reason }),
            Event::Vitals => self.feel(),
            Event::Process(Happened { process, place }) => {
                self.place = place.or(self.place.take());
                self.step(Input::Process(process));
            }
            Event::Answer(asked) => self.answer(asked),
            Event::Idle(pause) => {
                // Kept until it is clear that the lane is held.
                self.pause = pause.or(self.pause.take());
                self.step(Input::Idle);
            }
            Event::LookedUp((trusted, facts)) => {
                self.face.trusted = trusted.or(self.face.trusted);
                if let Some(facts) = facts {
                    self.face.facts = facts;
                }
                self.tell_change();
            }
            Event::Recorded => {}
            Event::Tick => self.step(Input::Tick),
        }
    }

    /// There is a session as soon as there is a way to a runner.
    fn attend(&mut self) {
        if self.vitals.is_none()
            && let Some(session) = self.ground.session(&self.phone)
        {
            let mut vitals = session.vitals();
            // What it knows from the beginning is news here.
            vitals.mark_changed();
            self.vitals = Some(vitals);
        }
    }

    fn look(&mut self) {
        let sight = *self.sight.borrow_and_update();
        self.face.stale = sight.seen.is_some_and(|seen| seen.stale);
        self.face.host = sight.seen.map(|seen| seen.host).or(self.face.host);
        let before = self.looked_up_at;
        let is_news = before.is_none_or(|before| {
            let there = |sight: Sight| sight.seen.map(|seen| (seen.host, seen.number));
            there(before) != there(sight) || before.paired_event != sight.paired_event
        });
        let may_ask = self.ground.policy.health.facts;
        if is_news && may_ask && sight.seen.is_some_and(|seen| !seen.stale) {
            self.looked_up_at = Some(sight);
            let ground = Arc::clone(&self.ground);
            let phone = Arc::clone(&self.phone);
            self.look_up = Some(async move { ground.look_up(&phone).await }.boxed());
        }
        if sight.seen.is_none() {
            (self.look_up, self.looked_up_at) = (None, None);
        }
        self.step(Input::Presence(sight.seen));
    }

    /// Takes in what the session knows.
    fn feel(&mut self) {
        let Some(vitals) = &mut self.vitals else {
            return;
        };
        let now = *vitals.borrow_and_update();
        let before = std::mem::replace(&mut self.known, now);
        if now.condition != before.condition {
            self.step(Input::Condition(now.condition));
        }
        if now.unreachable != before.unreachable {
            self.step(Input::Unreachable);
        }
    }

    fn answer(&mut self, asked: Asked) {
        let Asked { epoch, answer } = asked;
        let heard = heard(answer);
        let uptime = match &heard {
            Heard::Status(status) => {
                if let Some(session) = self.phone.session.get() {
                    session.hear(status);
                }
                self.face.runner.suppressed_issues = Some(status.suppressed_issues);
                self.face.runner.recorded_failures = Some(status.recorded_failures);
                Some(Some(status.uptime))
            }
            Heard::SomethingElse => Some(None),
            Heard::Silence(_) | Heard::NoWay(_) => None,
        };
        if let Some(uptime) = uptime {
            let at = SystemTime::now();
            self.phone.beat(Pulse { at, uptime });
        }
        // What was known of another runner must not be held against this one.
        self.feel();
        self.step(Input::Answer { epoch, heard });
    }

    fn step(&mut self, input: Input) {
        let started = matches!(&input, Input::Process(Process::Started));
        let out = self.life.step(input, Instant::now());
        if started {
            self.face.runner.launches += 1;
            self.face.runner.launch_time = Some(SystemTime::now());
        }
        // In this order: nothing starts on a port that is about to go, and what
        // waits finds the new one.
        let holds = self.life.holds_lane();
        if holds && self.pause.is_none() {
            self.pause = self.phone.session.get().map(Session::pause);
        }
        self.phone.port.send_if_modified(|port| {
            let now = self.life.port();
            std::mem::replace(port, now) != now
        });
        if !holds {
            self.pause = None;
        }
        if !self.life.is_launching() {
            self.place = None;
        }
        for act in &out.acts {
            self.act(act);
        }
        self.tell(out);
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Start => self.start(),
            Act::Stop => self.child.end(),
            Act::Ask { epoch, readiness } => {
                let window = if *readiness {
                    ProbeWindow::Readiness
                } else {
                    ProbeWindow::Health
                };
                self.question = Some(self.ask(*epoch, window));
            }
            Act::Quarantine(reason) => self.record(reason.clone()),
        }
    }

    /// Puts on record that the phone is left alone, or is no more.
    fn record(&mut self, reason: Option<String>) {
        let quarantine = reason.map(|reason| Quarantine {
            reason,
            since: SystemTime::now(),
        });
        let before = self.recording.take();
        let (settings, device) = (self.ground.settings.clone(), self.phone.udid.clone());
        let record = async move {
            OptionFuture::from(before).await;
            if let Err(error) = settings.quarantine(&device, quarantine).await {
                warn!(%error, "a quarantine cannot be put on record");
            }
        };
        self.recording = Some(record.boxed());
    }

    fn start(&mut self) {
        let way = self.phone.way.borrow().clone();
        if let (Some(LaunchWay::Command(command)), Some(launcher)) = (way, &self.ground.launcher) {
            self.child.begin(
                launcher.clone(),
                self.phone.udid.clone(),
                command.spec,
                Arc::clone(&self.ground.places),
            );
        } else {
            self.child.begin_in_vain();
        }
    }
}

fn plan(way: Option<&LaunchWay>) -> Plan {
    match way {
        None => Plan::Unknown,
        Some(LaunchWay::Static(port)) => Plan::Static { port: port.get() },
        Some(LaunchWay::Command(command)) => Plan::Command {
            identity: identity(&command.spec),
            start_timeout: command.start_timeout,
        },
    }
}

/// Tells one command from another, for as long as the gateway runs.
fn identity(spec: &LaunchSpec) -> u64 {
    let LaunchSpec {
        argv,
        env,
        directory,
        stop_grace,
    } = spec;
    let mut hasher = DefaultHasher::new();
    (argv, env, directory, stop_grace).hash(&mut hasher);
    hasher.finish()
}
