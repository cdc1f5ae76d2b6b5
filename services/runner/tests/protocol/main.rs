//! The crate as its users see it, against bytes written down from the
//! specification and against arbitrary ones.

#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod build;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod envelope_rules;
#[cfg(test)]
mod envelopes;
#[cfg(test)]
mod framing;
#[cfg(test)]
mod ids;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod request_rules;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod sends;
