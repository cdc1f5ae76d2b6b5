//! What the scheduler decides: case by case, for whatever happens, and next to
//! another one that is written the simple way.

mod changes;
mod crowd;
mod ending;
mod explaining;
mod granting;
mod model;
mod naive;
mod opening;
mod properties;
mod referee;
mod restart;
mod support;
mod waiting;
mod world;
