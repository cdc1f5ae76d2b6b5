//! A watch, line by line.

use fleetgate_proto::v1::{
    AlarmChanged, CommandFate, CommandKind, DeviceChanged, DeviceState, DeviceTransition, Effect,
    Fate, FleetEvent, FleetGap, FleetSnapshot, FleetSynced, Heartbeat,
};
use serde_json::{Value, json};

use super::*;
use crate::view::device::tests::{anna, at, bert, lost_host};

fn lines(item: Item) -> Vec<FleetLine> {
    let message = pb::WatchFleetResponse {
        cursor: "c7".to_owned(),
        item: Some(item),
    };
    FleetLine::all(message, &|_| true)
}

fn event(event: Event) -> FleetLine {
    let happened = FleetEvent {
        seq: 7,
        time: Some(at(0)),
        event: Some(event),
    };
    lines(Item::Event(happened)).remove(0)
}

fn wedged() -> FleetLine {
    event(Event::DeviceChanged(DeviceChanged {
        device: Some(pb::Device {
            state: DeviceState::Wedged.into(),
            ..anna()
        }),
        transition: Some(DeviceTransition {
            time: Some(at(0)),
            device: anna().udid,
            from: DeviceState::Ready.into(),
            to: DeviceState::Wedged.into(),
            reason: "RUNNER_WEDGED".to_owned(),
            detail: Some("stuck for 120 s".to_owned()),
            ..DeviceTransition::default()
        }),
    }))
}

fn json(line: &FleetLine) -> Value {
    serde_json::to_value(line).unwrap()
}

#[test]
fn a_change_of_state_is_a_line_and_an_object_with_the_phone_as_it_is_now() {
    let line = wedged();
    assert_eq!(
        line.text(),
        "2026-11-30T12:00:00.000Z  device     anna (00008110-000978540290401E)  \
         ready -> wedged  RUNNER_WEDGED  stuck for 120 s"
    );
    assert!(
        line.brief().starts_with("12:00:00  device     anna"),
        "{}",
        line.brief()
    );
    let json = json(&line);
    assert_eq!(
        (&json["event"], &json["cursor"], &json["seq"]),
        (&json!("device"), &json!("c7"), &json!(7))
    );
    assert_eq!(json["device"]["state"], "wedged");
    assert_eq!(
        json["transition"],
        json!({
            "time": "2026-11-30T12:00:00.000Z",
            "from": "ready",
            "to": "wedged",
            "reason": "RUNNER_WEDGED",
            "detail": "stuck for 120 s",
        })
    );
}

#[test]
fn a_snapshot_is_a_line_per_host_and_phone_and_comes_without_a_cursor() {
    let told = lines(Item::Snapshot(FleetSnapshot {
        devices: vec![anna(), bert()],
        mux_hosts: vec![lost_host()],
    }));
    let text: Vec<_> = told.iter().map(FleetLine::text).collect();
    assert_eq!(
        text,
        [
            "as it is                  host       rack-b  10.0.0.2:27015  not connected: connection refused",
            "as it is                  device     anna (00008110-000978540290401E)  ready  RUNNER_READY",
            "as it is                  device     bert (00008020-00060D691AD8003A)  quarantined  QUARANTINED  \
             [cordoned, stale, untrusted, 2 queued, RUNNER_DRIFT]",
        ]
    );
    assert!(told.iter().all(|line| !line.is_news()));
    assert!(wedged().is_news());
    let json = json(&told[1]);
    assert_eq!(
        (&json["event"], &json["snapshot"]),
        (&json!("device"), &json!(true))
    );
    assert_eq!(json.get("cursor"), None);
}

#[test]
fn alarms_fates_and_hosts_are_lines_too() {
    let alarm = |ended| {
        event(Event::Alarm(AlarmChanged {
            device: bert().udid,
            alarm: bert().alarms.pop(),
            ended,
        }))
    };
    assert_eq!(
        alarm(false).text(),
        "2026-11-30T12:00:00.000Z  alarm      00008020-00060D691AD8003A  \
         RUNNER_DRIFT: 3 failures were recorded and none suppressed"
    );
    assert!(alarm(true).text().ends_with("RUNNER_DRIFT has ended"));
    let fate = event(Event::Command(CommandFate {
        command_id: "c-1".to_owned(),
        device: anna().udid,
        kind: CommandKind::Tap.into(),
        fate: Fate::Completed.into(),
        effect: Effect::Applied.into(),
        reason: None,
        revised: true,
    }));
    assert_eq!(
        fate.text(),
        "2026-11-30T12:00:00.000Z  command    00008110-000978540290401E  c-1  tap  \
         completed after all, effect applied"
    );
    assert_eq!(json(&fate)["fate"], "completed");
    let host = event(Event::HostChanged(lost_host()));
    assert_eq!(json(&host)["host"]["last_error"], "connection refused");
    let newer = lines(Item::Event(FleetEvent::default())).remove(0);
    assert_eq!(json(&newer)["event"], "unknown");
}

#[test]
fn a_gap_is_told_and_a_heartbeat_is_not() {
    let gap = lines(Item::Gap(FleetGap { missed: Some(12) })).remove(0);
    assert_eq!(
        gap.gap().as_deref(),
        Some("12 events are missing; the fleet as it is follows")
    );
    assert_eq!(json(&gap)["missed"], 12);
    let synced = lines(Item::Synced(FleetSynced {})).remove(0);
    assert_eq!(json(&synced), json!({ "cursor": "c7", "event": "synced" }));
    assert!(lines(Item::Heartbeat(Heartbeat::default())).is_empty());
}

#[test]
fn words_of_a_phone_cannot_steer_the_terminal() {
    let hostile = pb::Device {
        alias: Some("\u{1b}[2J".to_owned()),
        ..anna()
    };
    let changed = DeviceChanged {
        device: Some(hostile),
        transition: None,
    };
    let line = event(Event::DeviceChanged(changed));
    assert!(!line.text().contains('\u{1b}') && !line.brief().contains('\u{1b}'));
}

#[test]
fn a_census_counts_phones_by_state() {
    assert_eq!(census([].into_iter()), "no phones");
    assert_eq!(census([anna()].iter()), "1 phone: 1 ready");
    assert_eq!(
        census([anna(), bert(), anna()].iter()),
        "3 phones: 2 ready, 1 quarantined; 1 of them stale"
    );
}
