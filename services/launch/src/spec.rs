//! The template of a process: what is run for a phone, and how.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// How a runner's process is started and stopped.
///
/// The arguments and the values of the environment may hold `{udid}`, `{log}`
/// (the path of the log that the process writes) and `{result_bundle}` (a path
/// at which nothing exists yet). A brace that is meant is written twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What its environment has besides the gateway's, or in its stead.
    pub env: BTreeMap<String, String>,
    /// Its working directory; the gateway's if absent.
    pub directory: Option<PathBuf>,
    /// How long its group may take to end after a SIGTERM.
    pub stop_grace: Duration,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// There is nothing to run.
    #[error("argv names no program")]
    NoProgram,
    /// A placeholder that nobody fills.
    #[error(
        "{place} has the unknown placeholder {{{name}}}: known are {{udid}}, {{log}} and {{result_bundle}}"
    )]
    UnknownPlaceholder {
        /// Where it stands.
        place: String,
        /// Its name.
        name: String,
    },
    /// A brace that neither begins nor ends a placeholder.
    #[error("{place} has a single brace: a brace that is meant is written twice")]
    SingleBrace {
        /// Where it stands.
        place: String,
    },
    /// A NUL byte, which no argument and no variable can hold.
    #[error("{place} has a NUL byte")]
    Nul {
        /// Where it stands.
        place: String,
    },
    /// A name that a variable cannot have, or that is ours to set.
    #[error("env has the name '{name}', which a template cannot set")]
    Variable {
        /// The name.
        name: String,
    },
}

impl LaunchSpec {
    /// The grace that a template has which does not say.
    pub const STOP_GRACE: Duration = Duration::from_secs(5);

    /// A template of these arguments and nothing else.
    pub fn new<A: Into<String>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            directory: None,
            stop_grace: Self::STOP_GRACE,
        }
    }

    /// Whether this can be used for a phone, as far as the text tells.
    pub fn check(&self) -> Result<(), InvalidSpec> {
        match self.argv.first() {
            Some(program) if !program.is_empty() => Ok(()),
            Some(_) | None => Err(InvalidSpec::NoProgram),
        }
    }
}
