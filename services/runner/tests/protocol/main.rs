//! The crate as its users see it, against bytes written down from the
//! specification and against arbitrary ones.

#[cfg(test)]
mod build;
#[cfg(test)]
mod envelope_rules;
#[cfg(test)]
mod envelopes;
#[cfg(test)]
mod framing;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod request_rules;
#[cfg(test)]
mod requests;
