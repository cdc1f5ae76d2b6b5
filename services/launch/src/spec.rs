//! The template of a process: what is run for a phone, and how.
//!
//! Invariant: a template that passes [`LaunchSpec::check`] can be filled for
//! every phone; what it needs of the host (the program, the directory) is
//! looked at when it is started.

mod template;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use template::Values;

/// The variable by which a process is known to be of one launch.
pub(crate) const LAUNCH_ID: &str = "FLEETGATE_LAUNCH_ID";

/// How a runner's process is started and stopped.
///
/// The arguments and the values of the environment may hold `{udid}`, `{log}`
/// (the path of the log that the process writes) and `{result_bundle}` (a path
/// at which nothing exists yet). A brace that is meant is written twice.
///
/// The process has the gateway's environment but for the variables that begin
/// with `FLEETGATE_`: they configure the gateway, and may hold what is none of
/// a runner's business. `FLEETGATE_LAUNCH_ID` is set.
///
/// ```
/// use fleetgate_launch::LaunchSpec;
///
/// let spec = LaunchSpec::new(["bring-up", "--phone={udid}", "--json={{}}"]);
/// assert!(spec.check().is_ok());
/// assert!(LaunchSpec::new(["bring-up", "{phone}"]).check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchSpec {
    /// The program and its arguments. A program without a slash is looked for
    /// in the PATH of its environment.
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
        "{place} has the unknown placeholder {{{name}}}: known are {{udid}}, {{log}} and \
         {{result_bundle}}, and a brace that is meant is written twice"
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
    /// The grace of a template that does not say.
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
        self.fill(&Values::example()).map(drop)
    }

    /// What is run for one phone.
    pub(crate) fn fill(&self, values: &Values<'_>) -> Result<Filled, InvalidSpec> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(InvalidSpec::NoProgram);
        }
        let argv = self.argv.iter().enumerate();
        let argv = argv.map(|(at, text)| template::fill(text, || format!("argv[{at}]"), values));
        let env = self.env.iter().map(|(name, text)| {
            check_name(name)?;
            let value = template::fill(text, || format!("env.{name}"), values)?;
            Ok((name.clone(), value))
        });
        Ok(Filled {
            argv: argv.collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, InvalidSpec>>()?,
        })
    }
}

/// A template with its placeholders filled.
#[derive(Debug)]
pub(crate) struct Filled {
    /// Never empty.
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: BTreeMap<String, OsString>,
}

/// A name must survive a shell, which is what waits until a process may begin.
fn check_name(name: &str) -> Result<(), InvalidSpec> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = |byte: &u8| !byte.is_ascii_digit();
    if name.bytes().all(word) && name.as_bytes().first().is_some_and(begins) && name != LAUNCH_ID {
        Ok(())
    } else {
        Err(InvalidSpec::Variable {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_env(name: &str, value: &str) -> LaunchSpec {
        let mut spec = LaunchSpec::new(["true"]);
        spec.env.insert(name.to_owned(), value.to_owned());
        spec
    }

    #[test]
    fn a_template_without_a_program_is_refused() {
        for argv in [Vec::new(), vec![""], vec!["", "x"]] {
            assert_eq!(LaunchSpec::new(argv).check(), Err(InvalidSpec::NoProgram));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let complaint = |spec: LaunchSpec| spec.check().unwrap_err().to_string();
        let argument = complaint(LaunchSpec::new(["a", "--x={phone}"]));
        assert!(argument.starts_with("argv[1] has the unknown placeholder {phone}"));
        let variable = complaint(with_env("HERE", "{}"));
        assert!(variable.starts_with("env.HERE has the unknown placeholder {}"));
        assert!(complaint(with_env("HERE", "a\0")).starts_with("env.HERE has a NUL"));
        assert!(complaint(LaunchSpec::new(["${x", "y"])).starts_with("argv[0] has a single"));
    }

    #[test]
    fn a_variable_has_a_name_that_a_shell_knows_and_never_the_launchs() {
        for name in ["", "1A", "A-B", "A=B", "A B", "\u{e4}", LAUNCH_ID] {
            let refused = with_env(name, "x").check();
            assert!(
                matches!(refused, Err(InvalidSpec::Variable { .. })),
                "{name}"
            );
        }
        with_env("_a9", "x").check().unwrap();
    }
}
