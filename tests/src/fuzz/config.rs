//! The configuration: a file, and environment variables over it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use fleetgate_gateway::config::LogFormat;
use fleetgate_gateway::{Config, ConfigError};
use fleetgate_runner::Udid;
use tempfile::NamedTempFile;

/// The line between the file and the variables.
const THEN_VARIABLES: &str = "\n%\n";

/// What a runner's port must never be: lockdown's.
const LOCKDOWN: u16 = 62078;

/// Takes the bytes as a configuration file and, after a line `%`, as lines of
/// `NAME=value`. Bytes that are not UTF-8 are replaced.
///
/// # Panics
///
/// If a refusal does not name its file or its variable, the order of variables
/// matters, a variable of others does, or a configuration is taken that
/// promises more than it holds.
pub fn config(data: &[u8]) {
    let input = String::from_utf8_lossy(data);
    let (text, lines) = input.split_once(THEN_VARIABLES).unwrap_or((&input, ""));
    let variables: Vec<_> = lines
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();

    let file = NamedTempFile::new().expect("a temporary file");
    fs::write(file.path(), text).expect("a temporary file that can be written");
    let path = file.path();

    let alone = Config::load_with(Some(path), []);
    let whole = Config::load_with(Some(path), variables.clone());
    match (&alone, &whole) {
        // A variable may set at odds what goes together, or the reverse.
        (Err(ConfigError::Discord { .. }), _)
        | (
            Ok(_),
            Ok(_)
            | Err(
                ConfigError::Discord { .. }
                | ConfigError::Variable { .. }
                | ConfigError::ListVariable { .. },
            ),
        ) => {}
        (Err(_), _) | (Ok(_), Err(ConfigError::File { .. } | ConfigError::Unreadable { .. })) => {
            assert_eq!(told(&alone), told(&whole), "the file comes first");
        }
    }
    assert_eq!(
        told(&whole),
        told(&Config::load_with(
            Some(path),
            variables.iter().rev().cloned()
        )),
        "the order of variables matters"
    );
    let others = variables.into_iter().chain(
        [("FLEETGATE_ADDRESS", "="), ("SERVER__LISTEN", "[::]:0")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    assert_eq!(
        told(&whole),
        told(&Config::load_with(Some(path), others)),
        "a variable of others matters"
    );

    if let Ok(config) = &alone {
        let mut expected = config.clone();
        expected.log.format = LogFormat::Json;
        let harmless = ("FLEETGATE_LOG__FORMAT".to_owned(), "json".to_owned());
        let over = Config::load_with(Some(path), [harmless]);
        assert_eq!(told(&over), Ok(&expected), "one variable is one key");
    }

    for loaded in [&alone, &whole] {
        match loaded {
            Ok(config) => assert_usable(config),
            Err(error) => assert_named(error, path),
        }
    }
}

/// Results in a form that can be compared, errors included.
fn told(loaded: &Result<Config, ConfigError>) -> Result<&Config, String> {
    loaded.as_ref().map_err(ToString::to_string)
}

fn assert_named(error: &ConfigError, path: &Path) {
    let message = error.to_string();
    match error {
        ConfigError::Unreadable { .. } | ConfigError::File { .. } | ConfigError::Discord { .. } => {
            assert!(message.contains(&*path.to_string_lossy()), "{message}");
        }
        ConfigError::Variable { variable, .. } | ConfigError::ListVariable { variable } => {
            assert!(variable.starts_with("FLEETGATE_"), "{variable}");
            assert!(message.contains(variable), "{message}");
        }
    }
}

fn assert_usable(config: &Config) {
    let listen = config.server.listen.address();
    if !listen.ip().to_canonical().is_loopback() {
        assert!(config.tls.certificate.is_some() && config.tls.key.is_some());
        assert!(config.auth.anonymous.is_none(), "{listen}");
    }

    let devices = || config.device.iter();
    let ports = devices().filter_map(|device| device.runner_port);
    for port in ports.chain(config.runner.port) {
        assert!(port.get() >= 1024 && port.get() != LOCKDOWN, "{port:?}");
    }

    let udids: HashSet<_> = devices().map(|device| &device.udid).collect();
    assert_eq!(udids.len(), devices().count(), "a phone twice");
    let aliases: Vec<_> = devices()
        .filter_map(|device| device.alias.as_ref())
        .collect();
    let different: HashSet<_> = aliases.iter().collect();
    assert_eq!(different.len(), aliases.len(), "an alias twice");
    for alias in aliases {
        assert!(alias.as_str().parse::<Udid>().is_err(), "{alias}");
        assert!((1..=64).contains(&alias.as_str().chars().count()));
    }
}
