//! The fault matrix: every mutation, under everything that can go wrong with
//! it, for a caller that stays, cancels, runs out of time or loses its
//! connection.
//!
//! Each cell has a phone of its own; the cells of a row share a lab and a
//! gateway. What is asserted is what the phone did, held against what the
//! ledger and the callers say ([`fleetgate_tests::invariants`]), and that the
//! device can be used afterwards.
//!
//! One thing is not promised. A lane whose command lost its reply is opened when
//! the runner's journal does not know the command, as after a restart, or when
//! the request was never read. A runner that forgot a command while executing it
//! would say the same, and the next one would be sent beside. A runner forgets an
//! id when 64 others have been used since, and a lane uses one at a time, so that
//! it takes 64 commands by somebody else within one command's time. There is no
//! row for it.

#![expect(clippy::unwrap_used, reason = "a test ends where its set-up fails")]

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetgate_gateway::config::Synchronous;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Ids, Scenario};
use fleetgate_tests::Rig;
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use cell::{Caller, Cell, act_on_usbmuxd};
use faults::FAULTS;
use rows::{Hand, Row};

mod cell;
mod faults;
mod rows;

/// How many rows are tried at once.
const AT_ONCE: usize = 5;

/// Fifty times as fast as a phone: the shortest window is 60 ms, and a stall
/// that closes it makes a fate unknown, which no invariant forbids.
const TIME_SCALE: f64 = 0.02;

#[tokio::test(flavor = "multi_thread")]
async fn every_mutation_under_every_fault_for_every_caller_is_sent_at_most_once_and_its_fate_is_true()
 {
    try_all(wanted()).await;
}

/// These rows by themselves, again and again: what would go wrong is a race.
#[tokio::test(flavor = "multi_thread")]
async fn no_command_reaches_another_phone_when_usbmuxd_gives_it_the_old_number() {
    let mut rows = rows::all();
    rows.retain(Row::confuses_phones);
    for _ in 0..5 {
        try_all(rows.clone()).await;
    }
}

async fn try_all(rows: Vec<Row>) {
    let (places, mut running) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for row in rows {
        let places = Arc::clone(&places);
        running.spawn(async move {
            let _place = places.acquire_owned().await.unwrap();
            try_row(&row).await
        });
    }
    let (mut cells, mut broken) = (0, Vec::new());
    while let Some(tried) = running.join_next().await {
        let (count, wrong) = tried.unwrap();
        cells += count;
        broken.extend(wrong);
    }
    println!("{cells} cells of the fault matrix");
    assert!(
        broken.is_empty(),
        "{} of {cells} cells are broken:\n{}",
        broken.len(),
        broken.join("\n\n")
    );
}

/// All rows, or those that `FLEETGATE_MATRIX_ROW` is a part of the name of.
fn wanted() -> Vec<Row> {
    let part = std::env::var("FLEETGATE_MATRIX_ROW").unwrap_or_default();
    let mut rows = rows::all();
    rows.retain(|row| row.name.contains(&part));
    assert!(!rows.is_empty(), "no row is called {part:?}");
    rows
}

/// How many cells there were, and all that is to be told of those that broke.
async fn try_row(row: &Row) -> (usize, Vec<String>) {
    let mutations = CommandKind::ALL
        .into_iter()
        .filter(|kind| kind.is_mutation() && row.only.is_none_or(|only| only == *kind));
    let cells: Vec<_> = mutations
        .flat_map(|kind| Caller::ALL.map(|caller| (kind, caller)))
        .collect();
    let scenario = Scenario::fleet(u32::try_from(cells.len()).unwrap()).scaled(TIME_SCALE);
    let rig = Rig::configured(scenario, |config| {
        // No power is cut here.
        config.ledger.synchronous = Synchronous::Normal;
    })
    .await;
    let phones = rig.lab.phones();
    let mut cells: Vec<_> = cells
        .into_iter()
        .zip(phones)
        .map(|((kind, caller), phone)| Cell::new(row, kind, caller, phone))
        .collect();
    let count = cells.len();

    for cell in &cells {
        cell.prepare(row);
    }
    act_on_usbmuxd(&rig.lab, &row.before, count);
    join_all(cells.iter_mut().map(|cell| cell.send(&rig, row))).await;
    for cell in &cells {
        cell.meddle(row);
    }
    act_on_usbmuxd(&rig.lab, &row.meanwhile, count);
    join_all(cells.iter_mut().map(Cell::leave)).await;
    join_all(cells.iter_mut().map(|cell| cell.settle(&rig))).await;
    heal(&rig, row, &cells);
    join_all(cells.iter_mut().map(|cell| cell.probe(&rig))).await;

    let mut broken = Vec::new();
    for cell in cells {
        let name = cell.name.clone();
        let wrong = cell.verdict(&rig).await;
        if !wrong.is_empty() {
            broken.push(format!("## {name}\n{}", wrong.join("\n")));
        }
    }
    rig.stop().await;
    (count, broken)
}

fn heal(rig: &Rig, row: &Row, cells: &[Cell]) {
    for hand in row.before.iter().chain(&row.meanwhile) {
        match hand {
            Hand::StopUsbmuxd => rig.lab.start_usbmuxd(Ids::Fresh),
            Hand::StallUsbmuxd => rig.lab.stall_usbmuxd(false),
            Hand::Replug
            | Hand::Detach
            | Hand::KillRunner
            | Hand::RestartRunner
            | Hand::MoveRunner
            | Hand::Evict
            | Hand::Lock
            | Hand::LeaveApp
            | Hand::QuitApp
            | Hand::RestartUsbmuxd(_)
            | Hand::Odd(_) => {}
        }
    }
    cells.iter().for_each(Cell::heal);
}

#[test]
fn every_fault_that_can_befall_a_mutation_has_a_row_and_no_two_rows_share_a_name() {
    let rows = rows::all();
    let faults = rows.iter().flat_map(|row| &row.faults);
    let tried: BTreeSet<_> = faults
        .map(|fault| faults::befalls(&fault.inject).0)
        .collect();
    assert_eq!(tried, BTreeSet::from(FAULTS));
    let names: BTreeSet<_> = rows.iter().map(|row| &row.name).collect();
    assert_eq!(names.len(), rows.len());
}
