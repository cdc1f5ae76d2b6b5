//! Environment variables over the file's table.
//!
//! The file has been parsed strictly before, so whatever fails here is the
//! fault of the variable that was just laid over it, and can be named.

use figment::Figment;
use figment::providers::Serialized;
use figment::value::Value;

use super::{Config, ConfigError};

const PREFIX: &str = "FLEETGATE_";
const SEPARATOR: &str = "__";

/// `config`, which is what `table` says, with every variable of ours over it.
pub(super) fn over(
    config: Config,
    table: toml::Table,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let mut variables: Vec<_> = variables
        .into_iter()
        .filter_map(|(name, value)| Some((key(&name)?, name, value)))
        .collect();
    variables.sort_unstable();

    let mut figment = Figment::from(Serialized::defaults(table));
    let mut config = config;
    for (key, variable, value) in variables {
        if key == "device" || key.starts_with("device.") {
            return Err(ConfigError::DeviceVariable { variable });
        }
        (figment, config) = lay(&figment, &key, &value)
            .map_err(|source| ConfigError::Variable { variable, source })?;
    }
    Ok(config)
}

/// The key that a variable overrides, as `section.key`.
fn key(variable: &str) -> Option<String> {
    let name = variable.strip_prefix(PREFIX)?;
    name.contains(SEPARATOR)
        .then(|| name.to_ascii_lowercase().replace(SEPARATOR, "."))
}

fn lay(
    figment: &Figment,
    key: &str,
    value: &str,
) -> Result<(Figment, Config), Box<figment::Error>> {
    let with = |value: Value| {
        let figment = figment.clone().merge(Serialized::default(key, value));
        figment
            .extract()
            .map(|config| (figment, config))
            .map_err(Box::new)
    };
    let Ok(parsed) = value.parse::<Value>();
    // `8080` may be meant as a name or a path: as text it gets a second chance.
    with(parsed).or_else(|error| with(Value::from(value)).map_err(|_| error))
}
