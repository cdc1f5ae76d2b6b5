//! The writer's part in the survey: when there is a step.
//!
//! One that fails is tried again later; until then readers look at more
//! commands, and at nothing wrong.

use std::time::Duration;

use sqlx::ConnectOptions;
use tokio::time::Instant;

use super::{Writer, discard};
use crate::batch::CommitError;
use crate::survey::Survey;

/// After a step that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Knows how far the survey is, and when its next step may be.
#[derive(Debug)]
pub(crate) struct Surveyor {
    survey: Survey,
    not_before: Instant,
}

impl Surveyor {
    pub(crate) fn new(survey: Survey) -> Self {
        Self {
            survey,
            not_before: Instant::now(),
        }
    }

    pub(super) fn written(&mut self, newest: i64) {
        self.survey.written(newest);
    }

    /// When the next step is to be done; `None` if too little has come for one.
    pub(super) fn next(&self) -> Option<Instant> {
        self.survey.due().then_some(self.not_before)
    }
}

impl Writer {
    /// Does a step of the survey if there is one to do.
    pub(super) async fn survey(&mut self) {
        if self
            .surveyor
            .next()
            .is_none_or(|next| next > Instant::now())
        {
            return;
        }
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.options.connect().await,
        };
        let failure = match connection {
            Ok(mut connection) => match self.surveyor.survey.step(&mut connection).await {
                Ok(()) => {
                    self.connection = Some(connection);
                    return;
                }
                Err(CommitError {
                    error,
                    spoiled: false,
                }) => {
                    self.connection = Some(connection);
                    error
                }
                Err(CommitError {
                    error,
                    spoiled: true,
                }) => {
                    discard(connection).await;
                    error
                }
            },
            Err(error) => error,
        };
        tracing::debug!(error = %failure, "a survey of the ledger failed; it is tried again later");
        self.surveyor.not_before = Instant::now() + PAUSE;
    }
}
