//! What a phone tells of itself through lockdown, the service that every phone
//! runs on one fixed port.

use fleetgate_runner::{SendError, Udid};

use crate::hosts::Hosts;

/// What is known of a phone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What its owner calls it: `DeviceName`.
    pub name: Option<String>,
    /// `ProductType`, such as `iPhone14,2`.
    pub model: Option<String>,
    /// `ProductVersion`, such as `18.1`.
    pub os_version: Option<String>,
}

/// Why a phone told nothing of itself.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// No connection to it.
    #[error(transparent)]
    Connect(#[from] SendError),
    /// It did not answer in time.
    #[error("the phone did not answer in time")]
    Silent,
}

pub(crate) async fn ask(_hosts: &Hosts, _device: &Udid) -> Result<Facts, FactsError> {
    Err(FactsError::Silent)
}
