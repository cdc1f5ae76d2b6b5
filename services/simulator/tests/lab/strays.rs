//! Announcements of what is no phone, as the bytes that a client gets.

use fleetgate_simulator::{EntryKey, Ids, Lab, Scenario, Stray};
use tokio::io::DuplexStream;

use crate::wire::{PORT_8100, ask, plist, receive, result, try_pipe};

async fn list(lab: &Lab) -> String {
    ask(&mut lab.connect(), 7, &plist("ListDevices", "")).await
}

async fn listen(lab: &Lab) -> DuplexStream {
    let mut listener = lab.connect();
    assert_eq!(
        result(&ask(&mut listener, 1, &plist("Listen", "")).await),
        0
    );
    listener
}

fn lacking(key: EntryKey) -> Stray {
    Stray {
        lacks: vec![key],
        ..Stray::default()
    }
}

#[tokio::test(start_paused = true)]
async fn strays_stand_before_the_phones_in_lists_and_in_events() {
    let lab = Lab::start(Scenario::fleet(1));
    let stray = Stray {
        serial: "no UDID".to_owned(),
        connection: "Pigeon".to_owned(),
        ..Stray::default()
    };
    lab.stray(stray);
    let text = list(&lab).await;
    let at = |text: &str, part: &str| text.find(part).unwrap_or_else(|| panic!("{text}"));
    assert!(
        at(&text, "noUDID") < at(&text, "00008110-00F1EE7000000001"),
        "{text}"
    );
    assert!(
        text.contains("<key>ConnectionType</key><string>Pigeon</string>"),
        "{text}"
    );
    assert_eq!(text.matches("<key>Properties</key>").count(), 2);

    let mut listener = listen(&lab).await;
    assert!(receive(&mut listener).await.1.contains("noUDID"));
    assert!(receive(&mut listener).await.1.contains("00F1EE7000000001"));
    assert_eq!(
        try_pipe(&lab, 2, PORT_8100).await.unwrap_err(),
        2,
        "it leads nowhere"
    );
    assert!(try_pipe(&lab, 1, PORT_8100).await.is_ok());

    lab.clear_strays();
    let (_, gone) = receive(&mut listener).await;
    assert!(
        gone.contains("Detached") && gone.contains("<integer>2</integer>"),
        "{gone}"
    );
    assert!(!list(&lab).await.contains("noUDID"));
}

#[tokio::test(start_paused = true)]
async fn an_entry_can_lack_what_every_entry_has() {
    for (key, missing, left) in [
        (EntryKey::DeviceId, "DeviceID", "SerialNumber"),
        (EntryKey::SerialNumber, "SerialNumber", "DeviceID"),
        (EntryKey::ConnectionType, "ConnectionType", "DeviceID"),
        (EntryKey::Properties, "Properties", "DeviceID"),
    ] {
        let lab = Lab::start(Scenario::fleet(0));
        lab.stray(lacking(key));
        let list = list(&lab).await;
        let mut listener = listen(&lab).await;
        let (_, event) = receive(&mut listener).await;
        for text in [&list, &event] {
            assert!(text.contains("Attached"), "{text}");
            assert!(!text.contains(missing), "{key:?}: {text}");
            assert!(text.contains(left), "{key:?}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_can_be_anything() {
    let lab = Lab::start(Scenario::fleet(1));
    for device_id in [-1, 1, 1 << 40] {
        lab.stray(Stray {
            device_id: Some(device_id),
            ..Stray::default()
        });
    }
    let list = list(&lab).await;
    for number in ["-1", "1", "1099511627776"] {
        let key = format!("<key>DeviceID</key><integer>{number}</integer>");
        assert!(list.contains(&key), "{list}");
    }
}

#[tokio::test(start_paused = true)]
async fn strays_outlive_the_daemon_and_can_come_from_a_scenario() {
    let scenario: Scenario = "[[phones]]\n[[strays]]\nserial = \"odd\"\n"
        .parse()
        .unwrap();
    let lab = Lab::start(scenario);
    assert!(list(&lab).await.contains("<integer>2</integer>"));
    lab.start_usbmuxd(Ids::Fresh);
    let text = list(&lab).await;
    assert!(
        text.contains("odd") && text.contains("<integer>4</integer>"),
        "{text}"
    );
}
