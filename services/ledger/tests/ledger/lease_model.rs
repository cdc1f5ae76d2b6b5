//! Batches of anything anybody could write of leases, against the rules in a few
//! lines.

use std::collections::{BTreeMap, HashSet};

use fleetgate_ledger::{LeaseRow, LedgerError, NewLeaseWrite, OperationQuery};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::{Place, at_once, ended, granted, lease, operation, rows, tap};

#[derive(Debug, Clone, Default)]
struct Model {
    leases: BTreeMap<String, LeaseRow>,
    last_epoch: u64,
    /// Of the batch.
    epochs: HashSet<u64>,
    operations: usize,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Written,
    Request,
    Mismatch(&'static str),
    Epoch(u64),
}

impl Model {
    fn begin_batch(&mut self) {
        self.last_epoch = self.epochs.drain().fold(self.last_epoch, u64::max);
    }

    fn write(&mut self, write: &NewLeaseWrite) -> Answer {
        let mut next = self.clone();
        for row in &write.rows {
            let answer = next.row(row);
            if answer != Answer::Written {
                return answer;
            }
        }
        next.operations += write.operations.len();
        *self = next;
        Answer::Written
    }

    fn row(&mut self, row: &LeaseRow) -> Answer {
        let mut row = row.clone();
        let had = if let Some(known) = self.leases.get(&row.id) {
            if row.owner != known.owner {
                return Answer::Mismatch("owner");
            }
            if row.request_id.is_some() && row.request_id != known.request_id {
                return Answer::Mismatch("request");
            }
            if row.is_open && !known.is_open {
                return Answer::Mismatch("end");
            }
            if known.epoch.is_some() && row.epoch != known.epoch {
                return Answer::Mismatch("epoch");
            }
            row.request_id.clone_from(&known.request_id);
            known.epoch
        } else {
            let request = (&row.owner, row.request_id.as_ref());
            let mut others = self.leases.values();
            if row.request_id.is_some()
                && others.any(|it| (&it.owner, it.request_id.as_ref()) == request)
            {
                return Answer::Request;
            }
            None
        };
        if let Some(epoch) = row.epoch.filter(|_| had.is_none())
            && (epoch <= self.last_epoch || !self.epochs.insert(epoch))
        {
            return Answer::Epoch(epoch);
        }
        self.leases.insert(row.id.clone(), row);
        Answer::Written
    }
}

fn any_row(model: &Model, random: &mut StdRng) -> LeaseRow {
    let id = format!("l{}", random.random_range(0..300));
    let epoch = model.last_epoch + 3 - random.random_range(0..6.min(model.last_epoch + 3));
    let mut row = match model.leases.get(&id).filter(|_| random.random_bool(0.95)) {
        Some(known) => known.clone(),
        None => lease(&id),
    };
    if random.random_bool(0.3) && (row.epoch.is_none() || random.random_bool(0.1)) {
        row = LeaseRow {
            epoch: Some(epoch),
            devices: granted("", 1).devices,
            ..row
        };
    }
    if random.random_bool(0.1) {
        row = ended(row, random.random_range(0..9));
    } else if random.random_bool(0.03) {
        row.is_open = true;
        row.ended = None;
    }
    let is_known = model.leases.contains_key(&id);
    if random.random_bool(if is_known { 0.03 } else { 0.4 }) {
        "oidc:ada".clone_into(&mut row.owner);
    }
    if random.random_bool(if is_known { 0.03 } else { 0.6 }) {
        row.request_id = Some(format!("r{}", random.random_range(0..200)));
    } else if random.random_bool(0.1) {
        row.request_id = None;
    }
    row
}

#[tokio::test]
async fn batches_of_leases_keep_the_rules_whatever_they_hold() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("taken")).await.unwrap();
    let mut random = StdRng::seed_from_u64(11);
    let mut model = Model::default();
    let mut seen = [0; 4];
    for _ in 0..600 {
        model.begin_batch();
        let writes: Vec<NewLeaseWrite> = (0..random.random_range(1..6))
            .map(|_| NewLeaseWrite {
                operations: vec![operation("write")],
                ..rows(
                    (0..random.random_range(0..4))
                        .map(|_| any_row(&model, &mut random))
                        .collect::<Vec<_>>(),
                )
            })
            .collect();
        let expected: Vec<Answer> = writes.iter().map(|write| model.write(write)).collect();
        // Now and then the batch must be judged for another's sake.
        let judged = random.random_bool(0.3);
        let (answers, neighbour) = tokio::join!(
            at_once(writes.iter().cloned().map(|it| ledger.write_leases(it))),
            async {
                if judged {
                    ledger.intend(tap("taken")).await.unwrap_err();
                }
            }
        );
        let () = neighbour;
        let answers: Vec<Answer> = answers
            .into_iter()
            .map(|answer| match answer {
                Ok(()) => Answer::Written,
                Err(LedgerError::LeaseRequestTaken { .. }) => Answer::Request,
                Err(LedgerError::LeaseMismatch { what, .. }) => Answer::Mismatch(what),
                Err(LedgerError::EpochTaken { epoch, .. }) => Answer::Epoch(epoch),
                Err(error) => panic!("{error:?}"),
            })
            .collect();
        assert_eq!(answers, expected, "{writes:#?}");
        for answer in answers {
            seen[match answer {
                Answer::Written => 0,
                Answer::Request => 1,
                Answer::Mismatch(_) => 2,
                Answer::Epoch(_) => 3,
            }] += 1;
        }
    }
    assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
    model.begin_batch();

    for expected in model.leases.values() {
        assert_eq!(
            ledger.lease(&expected.id).await.unwrap().as_ref(),
            Some(expected)
        );
    }
    let clock = ledger.lease_clock().await.unwrap();
    assert_eq!(clock.last_epoch, model.last_epoch);
    let open: HashSet<String> = (ledger.open_leases().await.unwrap().into_iter())
        .map(|lease| lease.id)
        .collect();
    let expected = model.leases.values().filter(|lease| lease.is_open);
    assert_eq!(open, expected.map(|lease| lease.id.clone()).collect());
    let mut query = OperationQuery {
        page_size: 1000,
        ..OperationQuery::default()
    };
    let mut operations = 0;
    loop {
        let page = ledger.operations(query.clone()).await.unwrap();
        operations += page.operations.len();
        let Some(next) = page.next else { break };
        query.page_token = Some(next);
    }
    assert_eq!(operations, model.operations);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}
