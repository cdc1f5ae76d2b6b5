//! The order rule: who is next, and which phones are kept back for whom.
//!
//! Those that wait are gone through by priority, then by age. With the phones
//! that are free, in service and not kept back by one before it, a lease
//!
//! - gets its phones if there are enough of them, the least recently granted
//!   first;
//! - if there are not, but enough of those that match are in service, so that
//!   the missing ones come back, keeps the ones that there are back from those
//!   behind it: a lease that wants many phones at once would starve otherwise;
//! - if too few are in service, keeps nothing back: what it waits for may never
//!   come.
//!
//! A lease that does not wait keeps nothing back either: it is gone after this
//! step.
//!
//! Invariant: why a lease waits is explained by the same walk by which phones
//! are given out.

use crate::fleet::{Bits, Fleet};
use crate::id::LeaseId;

/// What the rule has to know of a lease that waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) id: &'a LeaseId,
    /// The phones that match.
    pub(super) matching: &'a Bits,
    /// How many of them it wants.
    pub(super) count: usize,
    /// Whether it still waits after this step if it gets none.
    pub(super) waits: bool,
}

/// What the rule says of a lease.
#[derive(Debug)]
enum Verdict {
    /// There are enough phones among these.
    Enough(Bits),
    /// There are not, and these are kept back.
    KeepsBack(Bits),
    /// There are not, and nothing is kept back.
    Nothing,
}

fn judge(wish: &Wish<'_>, open: &Bits, in_service: &Bits) -> Verdict {
    if wish.matching.count_common(open) >= wish.count {
        Verdict::Enough(wish.matching.common(open))
    } else if wish.waits && wish.matching.count_common(in_service) >= wish.count {
        Verdict::KeepsBack(wish.matching.common(open))
    } else {
        Verdict::Nothing
    }
}

/// Goes through those that wait and have no phones yet, and gives out what there
/// is.
pub(super) fn give_out<'a>(
    fleet: &Fleet,
    waiting: impl Iterator<Item = Wish<'a>>,
) -> Vec<(LeaseId, Vec<usize>)> {
    let mut given = Vec::new();
    let mut open = fleet.grantable();
    let mut order = None;
    if open.is_empty() {
        return given;
    }
    for wish in waiting {
        match judge(&wish, &open, fleet.in_service()) {
            Verdict::Enough(usable) => {
                // Most steps give nothing out and need no order.
                let order = order.get_or_insert_with(|| {
                    let grantable = fleet.in_order().filter(|number| open.contains(*number));
                    grantable.collect::<Vec<_>>()
                });
                let usable = order.iter().filter(|number| usable.contains(**number));
                let taken: Vec<_> = usable.take(wish.count).copied().collect();
                for number in &taken {
                    open.set(*number, false);
                }
                given.push((wish.id.clone(), taken));
            }
            Verdict::KeepsBack(kept) => open.remove_all(&kept),
            Verdict::Nothing => {}
        }
        if open.is_empty() {
            break;
        }
    }
    given
}

/// What those before a lease keep back, each with its own.
pub(super) fn kept_back<'a>(
    fleet: &Fleet,
    before: impl Iterator<Item = Wish<'a>>,
) -> Vec<(&'a LeaseId, Bits)> {
    let mut open = fleet.grantable();
    let mut kept_back = Vec::new();
    for wish in before {
        match judge(&wish, &open, fleet.in_service()) {
            // Has none of them only until the next step gives them out.
            Verdict::Enough(kept) | Verdict::KeepsBack(kept) => {
                open.remove_all(&kept);
                kept_back.push((wish.id, kept));
            }
            Verdict::Nothing => {}
        }
    }
    kept_back
}
