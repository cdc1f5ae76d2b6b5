//! The tour: what a gateway can do, shown through its own gRPC port.
//!
//! It plays by the rules of any client. Only two things come from behind the
//! scenes: the fault is planted in the simulated phone, and that phone is asked
//! how many taps it really felt.
//!
//! Invariant: a step succeeds only if its effect was seen by other means than
//! its own reply.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context as _, ensure};
use fleetgate_proto::v1::{
    CaptureSnapshotResponse, CommandReceipt, DeviceState, ListCommandsRequest, SnapshotNode,
    TapResponse,
};
use fleetgate_simulator::Injection;
use fleetgate_simulator::ui::DEMO_BUNDLE;

use super::screen::{find, label, middle, place, png_dimensions};
use super::stand::Stand;
use super::story::Story;
use crate::client::Client;
use crate::verbs::{command, devices, history, screenshot, tap, tree, type_text};
use crate::view::receipt::ReceiptView;
use crate::view::record::{self, RecordView};
use crate::view::tree::TreeView;
use crate::words;

/// What is typed.
const TEXT: &str = "Hello from Fleetgate";

/// How much of a long output is shown.
const EXCERPT: usize = 12;

/// One tour.
#[derive(Debug)]
pub(super) struct Tour<'a> {
    client: &'a Client,
    stand: &'a Stand,
    /// The phone that is driven, by its alias.
    device: String,
    started: SystemTime,
    /// Every command that was sent, to be looked up at the end.
    commands: Vec<String>,
    story: Story,
}

impl<'a> Tour<'a> {
    /// A tour of the first phone.
    pub(super) fn new(client: &'a Client, stand: &'a Stand) -> Self {
        let device = stand.alias().to_owned();
        Self {
            client,
            stand,
            device,
            started: SystemTime::now(),
            commands: Vec::new(),
            story: Story::default(),
        }
    }

    /// Plays all steps; an error names the step that did not have its effect.
    pub(super) async fn play(mut self) -> anyhow::Result<()> {
        self.story.heading(1, "Which phones are there?")?;
        self.devices().await.context("step 1, devices")?;
        self.story.heading(2, "What is on the screen?")?;
        self.tree().await.context("step 2, tree")?;
        self.story.heading(3, "Tap something that the tree lists")?;
        self.tap().await.context("step 3, tap")?;
        self.story.heading(4, "Type into a text field")?;
        self.type_text().await.context("step 4, type")?;
        self.story.heading(5, "Take a picture of it")?;
        self.screenshot().await.context("step 5, screenshot")?;
        self.story.heading(6, "Lose a reply, and not the tap")?;
        self.lost_reply().await.context("step 6, lost reply")?;
        self.story.heading(7, "Look everything up afterwards")?;
        self.history().await.context("step 7, history")
    }

    async fn devices(&mut self) -> anyhow::Result<()> {
        let devices = devices::list(self.client).await?;
        let ready = devices
            .iter()
            .filter(|device| device.state() == DeviceState::Ready)
            .count();
        self.story.show(&devices::lines(&devices), EXCERPT)?;
        let expected = self.stand.phones();
        ensure!(
            devices.len() == expected && ready == expected,
            "{} phones were listed and {ready} of them ready, out of {expected}",
            devices.len()
        );
        self.story.say(format!(
            "{ready} phones, all ready. The tour goes on with {}.",
            self.device
        ))
    }

    async fn tree(&mut self) -> anyhow::Result<()> {
        let snapshot = self.snapshot().await?;
        find(&snapshot.nodes, "Cell", |_| true)?;
        self.story.say(format!(
            "{DEMO_BUNDLE} shows {} elements, each with its place on the screen:",
            snapshot.nodes.len()
        ))?;
        self.story.show(&TreeView::from(snapshot).text(), EXCERPT)
    }

    async fn tap(&mut self) -> anyhow::Result<()> {
        let before = self.snapshot().await?;
        let row = find(&before.nodes, "Cell", |node| node.label.is_some())?;
        let name = label(row).to_owned();
        let at = middle(row)?;
        let reply = self.tap_on(row).await?;
        self.story.say(format!(
            "Tapped the row {name:?} in its middle, at ({}, {}). The receipt:",
            at.x, at.y
        ))?;
        self.show_receipt(reply.receipt)?;

        let after = self.snapshot().await?;
        let is_title = |node: &SnapshotNode| node.identifier.as_deref() == Some(&name);
        find(&after.nodes, "NavigationBar", is_title).context("the row's page did not open")?;
        let counter = counter(&after)?;
        self.story.say(format!(
            "A fresh tree shows its page, {name:?}, and on it a button {:?}.",
            label(counter)
        ))
    }

    async fn type_text(&mut self) -> anyhow::Result<()> {
        let page = self.snapshot().await?;
        let field = find(&page.nodes, "TextField", |_| true)?;
        let name = label(field).to_owned();
        self.tap_on(field).await?;
        let reply =
            type_text::send(self.client, &self.device, DEMO_BUNDLE, TEXT.to_owned()).await?;
        self.story.say(format!(
            "Tapped the field {name:?} and typed {} letters. The receipt:",
            TEXT.chars().count()
        ))?;
        self.note(reply.receipt.as_ref());
        self.show_receipt(reply.receipt)?;

        let typed = self
            .commands
            .last()
            .cloned()
            .context("no command was sent")?;
        let after = self.snapshot().await?;
        let value = find(&after.nodes, "TextField", |_| true)?
            .value
            .clone()
            .unwrap_or_default();
        ensure!(value == TEXT, "the field holds {value:?}");
        self.story.say(format!(
            "A fresh tree shows that the field holds {value:?}."
        ))?;
        let record = command::get(self.client, &typed)
            .await?
            .context("the ledger forgot the command")?;
        let kept = RecordView::from(record)
            .parameters()
            .context("the ledger kept nothing")?;
        ensure!(!kept.contains(TEXT), "the ledger kept the text");
        self.story.say(format!(
            "Of the text, the ledger keeps the length only: {kept}"
        ))
    }

    async fn screenshot(&mut self) -> anyhow::Result<()> {
        let picture = screenshot::capture(self.client, &self.device).await?;
        self.note(picture.header.receipt.as_ref());
        let (width, height) = png_dimensions(&picture.png).context("the picture is not a PNG")?;
        ensure!(
            (width, height) == (picture.header.width, picture.header.height)
                && width > 0
                && height > 0,
            "the picture is {width} x {height}, its header says {} x {}",
            picture.header.width,
            picture.header.height
        );
        let path = self.stand.picture()?;
        save_and_read_back(&path, &picture.png)?;
        self.story.say(format!(
            "{width} x {height} pixels, {} bytes, saved to",
            picture.png.len()
        ))?;
        self.story.show(&path.display().to_string(), EXCERPT)
    }

    async fn lost_reply(&mut self) -> anyhow::Result<()> {
        let before = self.snapshot().await?;
        let button = counter(&before)?;
        let label_before = label(button).to_owned();
        let phone = self.stand.phone();
        let taps_before = phone.screen().gestures.taps;
        phone.fault(Injection::ReplyLostAfterExecution);
        self.story.say(
            "The phone will execute the next tap and drop the connection instead of replying.",
        )?;
        let reply = self.tap_on(button).await?;
        let receipt = reply.receipt.context("the reply has no receipt")?;
        let command_id = receipt.command_id.clone();
        self.story.say(format!(
            "Tapped the button {label_before:?}. The receipt all the same:"
        ))?;
        self.show_receipt(Some(receipt.clone()))?;
        ensure!(
            receipt.recovered,
            "the reply was not lost: the receipt does not say that it was recovered"
        );

        let felt = phone.screen().gestures.taps - taps_before;
        let effects = phone.effects_of(&command_id.parse()?);
        ensure!(
            felt == 1 && effects == 1,
            "the phone felt {felt} taps, {effects} of them by this command"
        );
        let after = self.snapshot().await?;
        let label_after = label(counter(&after)?).to_owned();
        ensure!(
            label_after == "Tapped 1 time",
            "the button reads {label_after:?}"
        );
        self.story.say(
            "The gateway did not tap again: it asked the phone's journal what had become of the tap.",
        )?;
        self.story.say(format!(
            "The phone felt exactly {felt} tap, and the button reads {label_after:?}."
        ))
    }

    async fn history(&mut self) -> anyhow::Result<()> {
        let filters = ListCommandsRequest {
            device: self.device.clone(),
            start_time: Some(self.started.into()),
            ..ListCommandsRequest::default()
        };
        let records = history::list(self.client, filters, 1000).await?;
        for command_id in &self.commands {
            let record = records
                .iter()
                .find(|record| record.command_id == *command_id);
            let record =
                record.with_context(|| format!("the ledger does not list {command_id}"))?;
            let fate = words::fate(record.fate);
            ensure!(
                fate == "completed",
                "the ledger says that the fate of {command_id} is {fate}"
            );
        }
        let last = self.commands.last().context("no command was sent")?;
        let one = command::get(self.client, last).await?;
        ensure!(
            one.is_some_and(|record| record.command_id == *last),
            "the ledger does not find {last}"
        );
        let views: Vec<_> = records.into_iter().map(RecordView::from).collect();
        self.story.say(format!(
            "The ledger has all {} commands of this tour, the newest first:",
            views.len()
        ))?;
        self.story.show(&record::lines(&views), usize::MAX)
    }

    async fn snapshot(&mut self) -> anyhow::Result<CaptureSnapshotResponse> {
        let snapshot = tree::capture(self.client, &self.device, DEMO_BUNDLE).await?;
        self.note(snapshot.receipt.as_ref());
        Ok(snapshot)
    }

    async fn tap_on(&mut self, node: &SnapshotNode) -> anyhow::Result<TapResponse> {
        let reply = tap::send(self.client, &self.device, DEMO_BUNDLE, place(node)?, None).await?;
        self.note(reply.receipt.as_ref());
        Ok(reply)
    }

    fn show_receipt(&mut self, receipt: Option<CommandReceipt>) -> anyhow::Result<()> {
        let receipt = receipt.context("the reply has no receipt")?;
        self.story.show(&ReceiptView::from(receipt).text(), EXCERPT)
    }

    /// Remembers a command, to look it up at the end.
    fn note(&mut self, receipt: Option<&CommandReceipt>) {
        self.commands
            .extend(receipt.map(|receipt| receipt.command_id.clone()));
    }
}

/// The button that counts its taps.
fn counter(snapshot: &CaptureSnapshotResponse) -> anyhow::Result<&SnapshotNode> {
    find(&snapshot.nodes, "Button", |node| {
        label(node).starts_with("Tapped ")
    })
}

fn save_and_read_back(path: &Path, png: &[u8]) -> anyhow::Result<()> {
    screenshot::save(path, png).with_context(|| format!("cannot write {}", path.display()))?;
    let saved = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(
        saved == png,
        "{} does not hold what was written",
        path.display()
    );
    Ok(())
}
