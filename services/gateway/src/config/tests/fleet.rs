//! The keys of the fleet: hosts, launches, health, and what is known of a
//! phone.

use super::*;

const UDID: &str = "00008110-000978540290401E";

fn label(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// How the runner of the phone comes up under a configuration.
fn way(text: &str) -> Option<LaunchWay> {
    let config = from_file(text).unwrap();
    let device = config.device.get(&UDID.parse().unwrap());
    let labels = device.map(|device| device.labels.get().clone());
    config
        .launch
        .of(device, &labels.unwrap_or_default(), config.runner.port)
}

fn port(text: &str) -> Option<u16> {
    match way(text)? {
        LaunchWay::Static(port) => Some(port.get()),
        LaunchWay::Command(_) => None,
    }
}

#[test]
fn a_fleet_has_the_documented_defaults() {
    let config = from_file("").unwrap();
    let health = config.health;
    assert_eq!(health.probe_interval, Duration::from_secs(30));
    assert_eq!(health.probe_failures.get(), 3);
    assert_eq!(health.recycle_age, Duration::from_secs(23 * 60 * 60));
    assert_eq!(health.backoff_initial, Duration::from_secs(5));
    assert_eq!(health.backoff_max, Duration::from_secs(300));
    assert_eq!(health.quarantine_after.get(), 5);
    assert_eq!(health.stable_after, Duration::from_secs(600));
    assert_eq!(health.drift_failures.get(), 3);
    assert!(health.facts);
    assert_eq!(config.runner.max_launches.get(), 8);
    assert_eq!(config.runner.directory, None);
    assert_eq!(config.admin.listen, None);
    assert_eq!(config.host.iter().count(), 0);
    assert_eq!(config.launch.iter().count(), 0);
    assert_eq!(config.usbmuxd.address, None);
}

#[test]
fn every_key_of_a_fleet_is_taken() {
    let config = from_file(
        r#"
        [runner]
        directory = "/var/lib/fleetgate/r"
        max_launches = 2
        [health]
        probe_interval = "0s"
        probe_failures = 4
        recycle_age = "20h"
        backoff_initial = "1s"
        backoff_max = "2s"
        quarantine_after = 6
        stable_after = "0s"
        drift_failures = 7
        facts = false
        [admin]
        listen = "127.0.0.1:7701"
        [[host]]
        name = "rack-1"
        address = "10.0.0.1:27015"
        [[host]]
        name = "rack-2"
        address = "/run/mux-2"
        [[launch]]
        name = "xcode"
        labels = { rack = "a" }
        argv = ["xcodebuild", "-destination", "id={udid}"]
        env = { LOG = "{log}" }
        directory = "/tmp"
        start_timeout = "30s"
        stop_grace = "0s"
        [[device]]
        udid = "00008110000978540290401e"
        launch = "xcode"
        labels = { rack = "b", "team/x" = "" }
        name = "Anna's iPhone"
        model = "iPhone14,5"
        os_version = "18.1"
        "#,
    )
    .unwrap();
    assert_eq!(config.runner_directory(), Path::new("/var/lib/fleetgate/r"));
    assert_eq!(config.runner.max_launches.get(), 2);
    let health = &config.health;
    assert_eq!(health.probe_interval, Duration::ZERO);
    assert_eq!(health.probe_failures.get(), 4);
    assert_eq!(health.recycle_age, Duration::from_secs(72_000));
    assert_eq!(health.backoff_initial, Duration::from_secs(1));
    assert_eq!(health.backoff_max, Duration::from_secs(2));
    assert_eq!(health.quarantine_after.get(), 6);
    assert_eq!(health.stable_after, Duration::ZERO);
    assert_eq!(health.drift_failures.get(), 7);
    assert!(!health.facts);
    let admin = config.admin.listen.unwrap().address();
    assert_eq!(admin.to_string(), "127.0.0.1:7701");
    let device = config.device.iter().next().unwrap();
    assert_eq!(device.name.as_deref(), Some("Anna's iPhone"));
    assert_eq!(device.model.as_deref(), Some("iPhone14,5"));
    assert_eq!(device.os_version.as_deref(), Some("18.1"));
    let labels = [label("rack", "b"), label("team/x", "")].into();
    assert_eq!(*device.labels.get(), labels);
    let LaunchWay::Command(command) = &config.launch.iter().next().unwrap().way else {
        panic!("a command");
    };
    assert_eq!(command.spec.argv[2], "id={udid}");
    assert_eq!(command.spec.env, [label("LOG", "{log}")].into());
    assert_eq!(command.spec.directory.as_deref(), Some(Path::new("/tmp")));
    assert_eq!(command.start_timeout, Duration::from_secs(30));
    assert_eq!(command.spec.stop_grace, Duration::ZERO);
}

#[test]
fn the_local_usbmuxd_is_one_of_several_hosts_only_if_it_is_set() {
    let names = |text: &str| {
        let hosts = from_file(text).unwrap().usbmuxds();
        hosts
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let rack = "[[host]]\nname = \"rack\"\naddress = \"/rack\"\n";
    let local = "[usbmuxd]\naddress = \"/local\"\n";
    assert_eq!(names(""), "local");
    assert_eq!(names(rack), "rack");
    assert_eq!(names(&format!("{local}{rack}")), "local rack");
    let alone = from_file(local).unwrap().usbmuxds();
    assert_eq!(alone[0].1, Address::Unix("/local".into()));
}

#[test]
fn a_host_is_listed_once() {
    let host = |name: &str, address: &str| {
        format!("[[host]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    };
    for (text, expected) in [
        (host("a", "/a") + &host("a", "/b"), "host a is listed twice"),
        (
            host("a", "/a") + &host("b", "UNIX:/a"),
            "/a is listed twice",
        ),
        (
            "[usbmuxd]\naddress = \"/b\"\n".to_owned() + &host("local", "/a"),
            "a [[host]] is called local",
        ),
        (
            "[usbmuxd]\naddress = \"/a\"\n".to_owned() + &host("a", "/a"),
            "address UNIX:/a of [usbmuxd] is that of a [[host]]",
        ),
        (host("two words", "/a"), "not a name"),
        (host("a", "nowhere"), "not an address"),
    ] {
        let message = refusal(&text);
        assert!(message.contains(expected), "{message}");
        assert!(message.contains("fleetgate.toml"), "{message}");
    }
}

#[test]
fn a_launch_is_a_port_or_a_command() {
    for (keys, expected) in [
        ("port = 8100\nargv = [\"a\"]", "has a port and an argv"),
        ("", "neither a port nor an argv"),
        ("port = 8100\nenv = {}", "`env` is for an argv"),
        ("port = 8100\ndirectory = \"/\"", "`directory` is for"),
        ("port = 8100\nstart_timeout = \"1s\"", "`start_timeout`"),
        ("port = 8100\nstop_grace = \"1s\"", "`stop_grace`"),
        ("argv = [\"a\"]\nstart_timeout = \"0s\"", "start_timeout"),
        ("port = 62078", "lockdown"),
        ("argv = []", "argv"),
        ("argv = [\"a\", \"{uuid}\"]", "uuid"),
        ("argv = [\"a\"]\nenv = { A = \"{ecid}\" }", "ecid"),
        ("port = 8100\nlabels = { \"a b\" = \"\" }", "`a b`"),
    ] {
        let message = refusal(&format!("[[launch]]\nname = \"x\"\n{keys}"));
        assert!(message.contains(expected), "{message}");
    }
    let twice = "[[launch]]\nname = \"x\"\nport = 8100\n".repeat(2);
    let message = refusal(&twice);
    assert!(message.contains("launch x is listed twice"), "{message}");
}

#[test]
fn a_phone_is_launched_by_a_launch_that_there_is() {
    let message = refusal(&format!("[[device]]\nudid = \"{UDID}\"\nlaunch = \"y\""));
    assert!(message.contains("launch y of [[device]]"), "{message}");
    assert!(message.contains(UDID), "{message}");
    assert!(message.contains("fleetgate.toml"), "{message}");
}

#[test]
fn the_most_particular_word_on_a_runner_counts() {
    let launches = "[[launch]]\nname = \"named\"\nport = 8101\n\
                    [[launch]]\nname = \"rack\"\nlabels = { rack = \"a\", row = \"1\" }\nport = 8103\n\
                    [[launch]]\nname = \"all\"\nlabels = {}\nport = 8104\n";
    let device = |keys: &str| format!("[[device]]\nudid = \"{UDID}\"\n{keys}\n");
    let common = "[runner]\nport = 8105\n";
    let rack = "labels = { rack = \"a\", row = \"1\", more = \"\" }\n";

    let all = "launch = \"named\"\nrunner_port = 8102\n".to_owned() + rack;
    assert_eq!(
        port(&format!("{common}{launches}{}", device(&all))),
        Some(8101)
    );
    let own = "runner_port = 8102\n".to_owned() + rack;
    assert_eq!(
        port(&format!("{common}{launches}{}", device(&own))),
        Some(8102)
    );
    assert_eq!(
        port(&format!("{common}{launches}{}", device(rack))),
        Some(8103)
    );
    let half = "labels = { rack = \"a\" }\n";
    assert_eq!(
        port(&format!("{common}{launches}{}", device(half))),
        Some(8104)
    );
    assert_eq!(port(&format!("{common}{launches}")), Some(8104));
    let only_named = "[[launch]]\nname = \"named\"\nport = 8101\n";
    assert_eq!(port(&format!("{common}{only_named}")), Some(8105));
    assert_eq!(way(only_named), None);
}

#[test]
fn facts_and_labels_can_be_shown() {
    let long = "x".repeat(256);
    for (keys, expected) in [
        ("name = \"\"".to_owned(), "printable"),
        ("model = \"a\\nb\"".to_owned(), "printable"),
        (format!("os_version = \"{long}\""), "printable"),
        ("labels = { \"\" = \"\" }".to_owned(), "key of a label"),
        (format!("labels = {{ {long} = \"\" }}"), "key of a label"),
        (
            format!("labels = {{ a = \"{long}\" }}"),
            "at most 255 bytes",
        ),
        (
            "labels = { a = \"\\u001b[2J\" }".to_owned(),
            "that can be seen",
        ),
    ] {
        let message = refusal(&format!("[[device]]\nudid = \"{UDID}\"\n{keys}"));
        assert!(message.contains(expected), "{message}");
    }
    let many: Vec<_> = (0..65).map(|n| format!("l{n} = \"\"")).collect();
    let many = many.join(", ");
    let message = refusal(&format!(
        "[[device]]\nudid = \"{UDID}\"\nlabels = {{ {many} }}"
    ));
    assert!(message.contains("at most 64 labels"), "{message}");
}

#[test]
fn what_cannot_be_waited_or_counted_is_refused() {
    for (key, value) in [
        ("probe_failures", "0"),
        ("quarantine_after", "0"),
        ("drift_failures", "0"),
        ("recycle_age", "\"0s\""),
        ("backoff_initial", "\"0s\""),
        ("backoff_max", "\"0s\""),
        ("probe_interval", "\"often\""),
    ] {
        let message = refusal(&format!("[health]\n{key} = {value}"));
        assert!(message.contains(key), "{message}");
    }
    let message = refusal("[health]\nbackoff_initial = \"2m\"\nbackoff_max = \"1m\"");
    assert!(message.contains("backoff_initial"), "{message}");
    assert!(message.contains("backoff_max"), "{message}");
    refusal("[runner]\nmax_launches = 0");
    refusal("[admin]\nlisten = \"0.0.0.0:1\"");
}

#[test]
fn what_runners_leave_is_beside_the_ledger() {
    let config = from_file("[ledger]\npath = \"/s/fleetgate/ledger.db\"").unwrap();
    assert_eq!(config.runner_directory(), Path::new("/s/fleetgate/runners"));
}
