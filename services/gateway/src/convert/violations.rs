//! What is wrong with a request, field by field.

/// One field that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The field's path in the message, as in `point.normalized.x`.
    pub(crate) field: String,
    /// What is wrong with it. Never the value itself, which may be a secret.
    pub(crate) description: String,
}

/// Collects violations, so that a caller learns of all of them at once.
#[derive(Debug, Default)]
pub(crate) struct Violations(Vec<Violation>);

impl Violations {
    /// Notes one.
    pub(crate) fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(Violation {
            field: field.into(),
            description: description.into(),
        });
    }

    /// Notes one and gives `None`, for use at the end of a conversion.
    pub(crate) fn refuse<T>(
        &mut self,
        field: impl Into<String>,
        description: impl Into<String>,
    ) -> Option<T> {
        self.add(field, description);
        None
    }

    /// The value of a fallible conversion, or its error as a violation.
    pub(crate) fn take<T, E: ToString>(&mut self, field: &str, value: Result<T, E>) -> Option<T> {
        value
            .map_err(|error| self.add(field, error.to_string()))
            .ok()
    }

    /// `value`, if nothing was noted.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Violation>> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            Some(_) | None => Err(self.0),
        }
    }
}

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// Every field that is wrong.
    pub(crate) violations: Vec<Violation>,
    /// The device as the caller named it, if the request names one.
    pub(crate) device: Option<String>,
    /// The command's id as the caller gave it.
    pub(crate) command_id: Option<String>,
}

impl From<Vec<Violation>> for Invalid {
    fn from(violations: Vec<Violation>) -> Self {
        Self {
            violations,
            device: None,
            command_id: None,
        }
    }
}
