//! Every key is set once and its effect on the configuration seen; every kind
//! of mistake is made once and its message read.

use std::fs;

use super::*;

mod access;
mod fleet;

fn from_file(text: &str) -> Result<Config, ConfigError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fleetgate.toml");
    fs::write(&path, text).unwrap();
    Config::load_with(Some(&path), [])
}

fn from_env(name: &str, value: &str) -> Result<Config, ConfigError> {
    Config::load_with(None, [(name.to_owned(), value.to_owned())])
}

fn refusal(text: &str) -> String {
    from_file(text)
        .expect_err("the file should be refused")
        .to_string()
}

#[test]
fn an_empty_file_gives_the_documented_defaults() {
    let config = from_file("").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.server.listen.address().to_string(), "127.0.0.1:7700");
    assert_eq!(config.server.drain_timeout, Duration::from_secs(20));
    assert_eq!(config.server.max_request_bytes.as_u64(), 4 << 20);
    assert_eq!(config.server.max_reply_bytes.as_u64(), 4 << 20);
    assert_eq!(config.server.max_concurrent_streams.get(), 256);
    assert_eq!(config.server.max_connections.get(), 1024);
    assert_eq!(
        config.server.http2_keepalive_interval,
        Duration::from_secs(30)
    );
    assert_eq!(
        config.server.http2_keepalive_timeout,
        Duration::from_secs(20)
    );
    assert_eq!(config.server.heartbeat_interval, Duration::from_secs(15));
    assert_eq!(config.server.first_call_timeout, Duration::from_secs(20));
    assert_eq!(config.server.tcp_keepalive, Duration::from_secs(60));
    assert_eq!(config.ledger.synchronous, Synchronous::Full);
    assert_eq!(config.ledger.retention_max_age, None);
    assert_eq!(config.ledger.retention_max_size, None);
    assert_eq!(config.ledger.retention_interval, Duration::from_secs(60));
    assert_eq!(config.lane.capacity.get(), 64);
    assert_eq!(config.runner.port, None);
    assert_eq!(config.runner.busy_ceiling, Duration::from_secs(30));
    assert_eq!(config.device.iter().count(), 0);
    assert_eq!(config.log.filter, "info");
    assert_eq!(config.log.format, LogFormat::Text);
}

#[test]
fn every_key_of_the_file_is_taken() {
    let config = from_file(
        r#"
        [server]
        listen = "[::1]:0"
        drain_timeout = "1m 30s"
        max_request_bytes = "3MiB"
        max_reply_bytes = 1000
        max_concurrent_streams = 7
        max_connections = 8
        http2_keepalive_interval = "11s"
        http2_keepalive_timeout = "12s"
        heartbeat_interval = "14s"
        first_call_timeout = "15s"
        tcp_keepalive = "13s"
        [usbmuxd]
        address = "127.0.0.1:27015"
        [ledger]
        path = "/var/lib/fleetgate/l.db"
        synchronous = "normal"
        retention_max_age = "30days"
        retention_max_size = "2GiB"
        retention_interval = "10m"
        [lane]
        capacity = 3
        [runner]
        port = 8100
        busy_ceiling = "250ms"
        [[device]]
        udid = "00008110000978540290401e"
        alias = "front-left"
        runner_port = 8101
        [log]
        filter = "fleetgate=debug"
        format = "json"
        "#,
    )
    .unwrap();
    assert_eq!(config.server.listen.address().to_string(), "[::1]:0");
    assert_eq!(config.server.drain_timeout, Duration::from_secs(90));
    assert_eq!(config.server.max_request_bytes.as_u64(), 3 << 20);
    assert_eq!(config.server.max_reply_bytes.as_u64(), 1000);
    assert_eq!(config.server.max_concurrent_streams.get(), 7);
    assert_eq!(config.server.max_connections.get(), 8);
    assert_eq!(
        config.server.http2_keepalive_interval,
        Duration::from_secs(11)
    );
    assert_eq!(
        config.server.http2_keepalive_timeout,
        Duration::from_secs(12)
    );
    assert_eq!(config.server.heartbeat_interval, Duration::from_secs(14));
    assert_eq!(config.server.first_call_timeout, Duration::from_secs(15));
    assert_eq!(config.server.tcp_keepalive, Duration::from_secs(13));
    assert_eq!(
        config.usbmuxd.address,
        Some(Address::Tcp("127.0.0.1:27015".to_owned()))
    );
    assert_eq!(config.ledger.path, PathBuf::from("/var/lib/fleetgate/l.db"));
    assert_eq!(config.ledger.synchronous, Synchronous::Normal);
    let month = Duration::from_secs(30 * 24 * 60 * 60);
    assert_eq!(config.ledger.retention_max_age, Some(month));
    let size = config.ledger.retention_max_size.map(|size| size.as_u64());
    assert_eq!(size, Some(2 << 30));
    assert_eq!(config.ledger.retention_interval, Duration::from_secs(600));
    assert_eq!(config.lane.capacity.get(), 3);
    assert_eq!(config.runner.port.map(RunnerPort::get), Some(8100));
    assert_eq!(config.runner.busy_ceiling, Duration::from_millis(250));
    let device = config.device.iter().next().unwrap();
    assert_eq!(device.udid.as_str(), "00008110-000978540290401E");
    assert_eq!(device.alias.as_ref().map(Alias::as_str), Some("front-left"));
    assert_eq!(device.runner_port.map(RunnerPort::get), Some(8101));
    assert_eq!(config.log.filter, "fleetgate=debug");
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn an_unknown_key_is_named_with_its_file_and_line() {
    let message = refusal("[server]\nlisten = \"127.0.0.1:1\"\nlisstening = 1\n");
    assert!(message.contains("fleetgate.toml"), "{message}");
    assert!(message.contains("line 3"), "{message}");
    assert!(message.contains("lisstening"), "{message}");
}

#[test]
fn unknown_keys_are_refused_in_every_section() {
    for text in [
        "speed = 1",
        "[speed]",
        "[server]\nspeed = 1",
        "[usbmuxd]\nspeed = 1",
        "[ledger]\nspeed = 1",
        "[lane]\nspeed = 1",
        "[runner]\nspeed = 1",
        "[health]\nspeed = 1",
        "[admin]\nspeed = 1",
        "[tls]\nspeed = 1",
        "[auth]\nspeed = 1",
        "[limits]\nspeed = 1",
        "[[auth.binding]]\nprincipal = \"oidc:a\"\nrole = \"viewer\"\nspeed = 1",
        "[[auth.certificate]]\ndns = \"a\"\nrole = \"viewer\"\nspeed = 1",
        "[auth.oidc]\nissuer = \"a\"\naudience = \"b\"\njwks = \"/c\"\nspeed = 1",
        "[[host]]\nname = \"a\"\naddress = \"/a\"\nspeed = 1",
        "[[launch]]\nname = \"a\"\nport = 8100\nspeed = 1",
        "[log]\nspeed = 1",
        "[[device]]\nudid = \"00008110-000978540290401E\"\nspeed = 1",
    ] {
        assert!(refusal(text).contains("speed"), "{text}");
    }
}

#[test]
fn a_bad_value_is_named_with_its_line_and_key() {
    for (text, expected) in [
        ("[server]\ndrain_timeout = \"soon\"", "drain_timeout"),
        (
            "[server]\ndrain_timeout = \"100000000000years\"",
            "drain_timeout",
        ),
        ("[runner]\nbusy_ceiling = \"2years\"", "busy_ceiling"),
        ("[server]\nlisten = \"7700\"", "listen"),
        ("[server]\nmax_reply_bytes = \"much\"", "max_reply_bytes"),
        ("[server]\nmax_connections = 0", "max_connections"),
        (
            "[server]\nheartbeat_interval = \"0s\"",
            "heartbeat_interval",
        ),
        (
            "[server]\nhttp2_keepalive_interval = \"0s\"",
            "http2_keepalive_interval",
        ),
        (
            "[server]\nhttp2_keepalive_timeout = \"0s\"",
            "http2_keepalive_timeout",
        ),
        ("[server]\ntcp_keepalive = \"0s\"", "tcp_keepalive"),
        ("[server]\ntcp_keepalive = \"900ms\"", "tcp_keepalive"),
        ("[lane]\ncapacity = 0", "capacity"),
        ("[log]\nformat = \"xml\"", "format"),
        ("[ledger]\nsynchronous = \"off\"", "synchronous"),
        (
            "[ledger]\nretention_max_age = \"ever\"",
            "retention_max_age",
        ),
        (
            "[ledger]\nretention_max_size = \"much\"",
            "retention_max_size",
        ),
        (
            "[ledger]\nretention_interval = \"0s\"",
            "retention_interval",
        ),
        ("[usbmuxd]\naddress = \"\"", "address"),
    ] {
        let message = refusal(text);
        assert!(message.contains("line 2"), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_runner_port_is_never_a_system_port_nor_lockdowns() {
    for port in ["0", "22", "1023", "62078", "65536"] {
        refusal(&format!("[runner]\nport = {port}"));
        refusal(&format!(
            "[[device]]\nudid = \"00008110-000978540290401E\"\nrunner_port = {port}"
        ));
    }
    for port in [1024, 62077, 62079, 65535] {
        from_file(&format!("[runner]\nport = {port}")).unwrap();
    }
}

#[test]
fn one_phone_in_two_spellings_is_one_phone_twice() {
    let message = refusal(
        "[[device]]\nudid = \"00008110-000978540290401E\"\n\
         [[device]]\nudid = \"00008110000978540290401e\"\n",
    );
    assert!(
        message.contains("00008110-000978540290401E is listed twice"),
        "{message}"
    );
}

#[test]
fn an_alias_is_given_once_and_is_not_a_udid() {
    let message = refusal(
        "[[device]]\nudid = \"00008110-000978540290401E\"\nalias = \"a\"\n\
         [[device]]\nudid = \"00008110-000978540290401F\"\nalias = \"a\"\n",
    );
    assert!(message.contains("alias a is listed twice"), "{message}");
    for alias in [
        "00008110000978540290401e",
        "",
        "two words",
        "tab\\t",
        "anna\u{202e}",
        "an\u{200b}na",
    ] {
        let message = refusal(&format!(
            "[[device]]\nudid = \"00008110-000978540290401E\"\nalias = \"{alias}\""
        ));
        assert!(message.contains("line 3"), "{message}");
    }
}

#[test]
fn variables_override_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fleetgate.toml");
    fs::write(
        &path,
        "[server]\ndrain_timeout = \"5s\"\n[lane]\ncapacity = 9\n",
    )
    .unwrap();
    let variables = [
        ("FLEETGATE_SERVER__DRAIN_TIMEOUT", "7s"),
        ("FLEETGATE_SERVER__LISTEN", "127.0.0.1:9999"),
        ("FLEETGATE_RUNNER__PORT", "8123"),
        ("FLEETGATE_LEDGER__PATH", "12345"),
        ("FLEETGATE_LOG__FORMAT", "json"),
        ("FLEETGATE_ADDRESS", "belongs to the command line"),
        ("PATH", "/bin"),
    ];
    let config = Config::load_with(
        Some(&path),
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())),
    )
    .unwrap();
    assert_eq!(config.server.drain_timeout, Duration::from_secs(7));
    assert_eq!(config.server.listen.address().port(), 9999);
    assert_eq!(config.runner.port.map(RunnerPort::get), Some(8123));
    assert_eq!(config.ledger.path, PathBuf::from("12345"));
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(
        config.lane.capacity.get(),
        9,
        "what no variable names stays"
    );
}

#[test]
fn a_bad_variable_is_named() {
    for (name, value) in [
        ("FLEETGATE_SERVER__DRAIN_TIMEOUT", "soon"),
        ("FLEETGATE_SERVER__SPEED", "1"),
        ("FLEETGATE_NOWHERE__KEY", "1"),
        ("FLEETGATE_RUNNER__PORT", "22"),
        ("FLEETGATE_DEVICE__UDID", "00008110-000978540290401E"),
        ("FLEETGATE_HOST__NAME", "rack"),
        ("FLEETGATE_LAUNCH__NAME", "xcode"),
        ("FLEETGATE_HEALTH__PROBE_FAILURES", "0"),
    ] {
        let message = from_env(name, value).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Config::load_with(Some(Path::new("/nowhere/fleetgate.toml")), []).unwrap_err();
    assert!(error.to_string().contains("/nowhere/fleetgate.toml"));
}
