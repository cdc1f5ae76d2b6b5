//! Each verdict, from the evidence that leads to it.

use super::*;

const EPOCH: &str = "this boot";
const GROUP: u32 = 500;

fn process(pid: u32, group: u32, start: &str) -> Process {
    Process {
        pid,
        group,
        zombie: false,
        start: start.to_owned(),
    }
}

fn ended(process: Process) -> Process {
    Process {
        zombie: true,
        ..process
    }
}

fn suspect() -> Suspect {
    let leader = Started {
        pid: GROUP,
        epoch: EPOCH.to_owned(),
        start: "100".to_owned(),
    };
    Suspect::new(Uuid::nil(), leader)
}

fn ours() -> String {
    Uuid::nil().to_string()
}

fn anothers() -> String {
    Uuid::max().to_string()
}

/// The verdict on a suspect, if these are the processes and this is what those
/// of them say.
fn judge(
    suspect: &mut Suspect,
    processes: impl IntoIterator<Item = Process>,
    said: &[(u32, Option<String>)],
) -> Verdict {
    let table: Table = processes.into_iter().collect();
    let mut evidence = Evidence {
        table,
        epoch: EPOCH.to_owned(),
        own_group: 7,
        claims: HashMap::new(),
    };
    let witnesses = evidence.witnesses([&*suspect]);
    let heard = said.iter().filter(|(pid, _)| witnesses.contains(pid));
    let heard = heard.filter_map(|(pid, said)| Some((*pid, said.clone()?)));
    evidence.claims = heard.collect();
    evidence.judge(suspect)
}

#[test]
fn a_leader_that_began_when_ours_did_is_ours_unless_it_says_otherwise() {
    let leader = || [process(GROUP, GROUP, "100")];
    let verdict = |claim| judge(&mut suspect(), leader(), &[(GROUP, claim)]);
    for claim in [Some(ours()), None] {
        assert_eq!(verdict(claim), Verdict::Ours(vec![GROUP]));
    }
    assert_eq!(verdict(Some(anothers())), Verdict::Foreign);
}

#[test]
fn a_process_that_began_at_another_time_is_foreign_whatever_it_says() {
    for claim in [Some(ours()), None] {
        let reused = [process(GROUP, GROUP, "101"), process(501, GROUP, "102")];
        let verdict = judge(
            &mut suspect(),
            reused,
            &[(GROUP, claim.clone()), (501, claim)],
        );
        assert_eq!(verdict, Verdict::Foreign);
    }
}

#[test]
fn a_process_of_that_number_in_another_group_is_foreign() {
    let verdict = judge(&mut suspect(), [process(GROUP, 400, "100")], &[]);
    assert_eq!(verdict, Verdict::Foreign);
}

#[test]
fn a_leader_that_has_ended_but_has_its_number_still_proves_its_group() {
    let leader = || ended(process(GROUP, GROUP, "100"));
    let verdict = judge(&mut suspect(), [leader(), process(501, GROUP, "7")], &[]);
    assert_eq!(verdict, Verdict::Ours(vec![501]));
    assert_eq!(judge(&mut suspect(), [leader()], &[]), Verdict::Gone);
}

#[test]
fn without_its_leader_a_group_needs_a_member_that_says_whose_it_is() {
    let members = || [process(501, GROUP, "7"), process(502, GROUP, "8")];
    let verdict = |said: &[(u32, Option<String>)]| {
        let mut verdict = judge(&mut suspect(), members(), said);
        if let Verdict::Ours(pids) | Verdict::Unproven(pids) = &mut verdict {
            pids.sort_unstable();
        }
        verdict
    };
    assert_eq!(
        verdict(&[(502, Some(ours()))]),
        Verdict::Ours(vec![501, 502])
    );
    assert_eq!(
        verdict(&[(501, None), (502, Some(anothers()))]),
        Verdict::Unproven(vec![501, 502])
    );
    assert_eq!(verdict(&[]), Verdict::Unproven(vec![501, 502]));
}

#[test]
fn a_member_that_was_seen_beside_its_leader_proves_the_group_later() {
    let mut suspect = suspect();
    let members = [process(GROUP, GROUP, "100"), process(501, GROUP, "7")];
    judge(&mut suspect, members, &[]);
    let verdict = judge(&mut suspect, [process(501, GROUP, "7")], &[]);
    assert_eq!(verdict, Verdict::Ours(vec![501]));
    let verdict = judge(&mut suspect, [process(501, GROUP, "9")], &[]);
    assert_eq!(verdict, Verdict::Unproven(vec![501]));
}

#[test]
fn nobody_is_left_when_only_ended_processes_are_in_the_group() {
    assert_eq!(judge(&mut suspect(), [], &[]), Verdict::Gone);
    let verdict = judge(&mut suspect(), [ended(process(501, GROUP, "7"))], &[]);
    assert_eq!(verdict, Verdict::Gone);
}

#[test]
fn whoever_has_a_number_of_another_boot_is_foreign() {
    let mut suspect = suspect();
    "another boot".clone_into(&mut suspect.leader.epoch);
    let verdict = judge(
        &mut suspect,
        [process(GROUP, GROUP, "100")],
        &[(GROUP, Some(ours()))],
    );
    assert_eq!(verdict, Verdict::Foreign);
}

#[test]
fn neither_our_own_group_nor_the_first_process_is_ever_a_suspect() {
    for group in [0, 1, 7] {
        let mut suspect = suspect();
        suspect.group = group;
        suspect.leader.pid = group;
        let verdict = judge(
            &mut suspect,
            [process(group, group, "100")],
            &[(group, Some(ours()))],
        );
        assert_eq!(verdict, Verdict::Foreign);
    }
}
