//! What stands on the board.

use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_proto::v1::{
    AlarmChanged, FleetEvent, FleetSnapshot, FleetSynced, MuxHost, WatchFleetResponse,
};

use super::*;
use crate::labels::Selector;
use crate::view::device::tests::{anna, at, bert, lost_host, now};

const WIDE: Size = Size {
    columns: 120,
    rows: 12,
};

fn message(item: Item) -> WatchFleetResponse {
    WatchFleetResponse {
        cursor: String::new(),
        item: Some(item),
    }
}

fn fleet(devices: Vec<Device>, mux_hosts: Vec<MuxHost>) -> Chosen {
    let mut chosen = Chosen::new(Selector::default());
    let snapshot = FleetSnapshot { devices, mux_hosts };
    chosen.take(message(Item::Snapshot(snapshot)));
    chosen.take(message(Item::Synced(FleetSynced {})));
    chosen
}

fn board() -> Board {
    Board::new("http://127.0.0.1:7700".to_owned(), true)
}

fn alarm(chosen: &mut Chosen) -> FleetLine {
    let changed = AlarmChanged {
        device: bert().udid,
        alarm: bert().alarms.pop(),
        ended: false,
    };
    let event = FleetEvent {
        seq: 1,
        time: Some(at(0)),
        event: Some(Event::Alarm(changed)),
    };
    chosen.take(message(Item::Event(event))).remove(0)
}

#[test]
fn a_board_shows_phones_lost_hosts_and_what_happened_last() {
    let mut chosen = fleet(vec![anna()], vec![lost_host()]);
    let mut board = board();
    board.note(&alarm(&mut chosen));
    assert_eq!(
        board.frame(&chosen, WIDE, now()),
        [
            "http://127.0.0.1:7700   1 phone: 1 ready   Ctrl-C ends",
            "host rack-b (10.0.0.2:27015) is not connected: connection refused",
            "",
            "UDID                       ALIAS  STATE  REASON        FOR  HOST   MODEL            LABELS",
            "00008110-000978540290401E  anna   ready  RUNNER_READY  1h   local  iPhone14,5 18.1  pool=ci,rack=a3",
            "",
            "12:00:00  alarm      00008020-00060D691AD8003A  RUNNER_DRIFT: 3 failures were recorded and none suppressed",
        ]
    );
}

#[test]
fn a_lost_connection_stands_there_until_the_gateway_is_heard_again() {
    let chosen = fleet(vec![anna()], Vec::new());
    let mut board = board();
    board.lost("note: the connection was lost");
    assert_eq!(
        board.frame(&chosen, WIDE, now())[1],
        "note: the connection was lost"
    );
    board.live();
    assert_eq!(board.frame(&chosen, WIDE, now())[1], "");
}

#[test]
fn where_not_all_phones_fit_those_in_trouble_come_first() {
    let phones = (0..50).map(|number| Device {
        udid: format!("00008110-{number:016X}"),
        ..anna()
    });
    let chosen = fleet(phones.chain([bert()]).collect(), Vec::new());
    let frame = board().frame(&chosen, WIDE, now());
    assert_eq!(frame.len(), WIDE.rows);
    assert!(frame[3].starts_with(&bert().udid), "{frame:?}");
    assert_eq!(frame[WIDE.rows - 1], "and 43 more");
    let tiny = Size {
        columns: 20,
        rows: 3,
    };
    let frame = board().frame(&chosen, tiny, now());
    assert!(frame.len() <= 3 && frame.iter().all(|line| line.chars().count() <= 20));
}

#[test]
fn events_are_kept_only_if_they_are_asked_for_and_only_the_last() {
    let mut chosen = fleet(vec![anna()], Vec::new());
    let told = alarm(&mut chosen);
    let mut quiet = Board::new(String::new(), false);
    quiet.note(&told);
    assert!(quiet.recent.is_empty());
    let mut board = board();
    (0..20).for_each(|_| board.note(&told));
    assert_eq!(board.recent.len(), EVENTS);
}
