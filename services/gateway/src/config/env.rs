//! Environment variables over the file's table.
//!
//! The file has been parsed strictly before, so whatever fails here is the
//! fault of the variable that was just laid over it, and can be named.
//!
//! Values are read by the file's own parser, which bounds how deep they nest.
//! Laying one over the rest recurses as deep as its key lies, so that a key
//! deeper than any of ours is refused before.

use figment::Figment;
use figment::providers::Serialized;

use super::{Config, ConfigError};

const PREFIX: &str = "FLEETGATE_";
const SEPARATOR: &str = "__";

/// Sections that are lists, which a variable cannot add to.
const LISTS: [&str; 3] = ["device", "host", "launch"];

/// Deeper than any key of ours.
const MAX_DEPTH: usize = 16;

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
        let section = key.split('.').next();
        if section.is_some_and(|section| LISTS.contains(&section)) {
            return Err(ConfigError::ListVariable { variable });
        }
        (figment, config) = lay(&figment, &key, &value).map_err(|mut source| {
            // Where in this source the value was laid over the rest helps nobody.
            source.metadata = None;
            ConfigError::Variable { variable, source }
        })?;
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
    if key.matches('.').count() > MAX_DEPTH {
        return Err(Box::new("no key lies as deep as this".to_owned().into()));
    }
    let with = |value: toml::Value| {
        let figment = figment.clone().merge(Serialized::default(key, value));
        figment
            .extract()
            .map(|config| (figment, config))
            .map_err(Box::new)
    };
    let value = value.trim();
    let text = || toml::Value::from(value);
    // As in the file, but that a text needs no quotes. `8080` may be meant as a
    // name or a path: as text it gets a second chance.
    let typed = value.parse().unwrap_or_else(|_| text());
    with(typed).or_else(|error| with(text()).map_err(|_| error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, value: &str) -> Result<Config, ConfigError> {
        Config::load_with(None, [(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_variable_that_nests_without_end_is_refused_by_its_name() {
        let endless = ["[".repeat(20_000), "{a=".repeat(20_000)];
        for value in endless {
            let error = load("FLEETGATE_LANE__CAPACITY", &value).unwrap_err();
            assert!(error.to_string().contains("FLEETGATE_LANE__CAPACITY"));
        }
        let name = format!("FLEETGATE_LANE{}", "__CAPACITY".repeat(20_000));
        assert!(load(&name, "1").unwrap_err().to_string().contains(&name));
    }

    #[test]
    fn a_refusal_names_the_variable_and_nothing_of_ours() {
        let error = load("FLEETGATE_LANE__CAPACITY", "many").unwrap_err();
        let told = error.to_string();
        assert!(told.contains("FLEETGATE_LANE__CAPACITY"), "{told}");
        assert!(told.contains("many"), "{told}");
        for ours in [".rs", "toml::", "default.", "for key"] {
            assert!(!told.contains(ours), "{told}");
        }
    }

    #[test]
    fn a_value_may_be_quoted_as_in_the_file() {
        let config = load("FLEETGATE_LEDGER__PATH", r#""/üb\u00e9r/a\tb""#).unwrap();
        assert_eq!(config.ledger.path.to_str(), Some("/übér/a\tb"));
    }

    #[test]
    fn a_text_may_have_many_brackets() {
        let filter = "app[span{field=1}]=debug,".repeat(20);
        let config = load("FLEETGATE_LOG__FILTER", &filter).unwrap();
        assert_eq!(config.log.filter, filter);
    }
}
