//! Which command lines are taken, and which are refused.

use clap::CommandFactory;

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split(' '))
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn shared_options_may_stand_before_and_after_the_verb() {
    for line in [
        "fleetgate --server lab:7701 --timeout 2s --output json devices",
        "fleetgate devices --server lab:7701 --timeout 2s --output json",
        "fleetgate devices --server lab:7701 --timeout 2s -o json",
    ] {
        let cli = parse(line).unwrap();
        let format = cli.format();
        let context = cli.client.context(format).unwrap();
        assert_eq!(context.server.to_string(), "http://lab:7701", "{line}");
        assert_eq!(context.timeout, Some(Duration::from_secs(2)), "{line}");
        assert_eq!(context.format, Format::Json, "{line}");
    }
}

#[test]
fn the_file_of_a_screenshot_and_its_output_format_do_not_clash() {
    let cli = parse("fleetgate screenshot phone -o json --output json").unwrap();
    assert_eq!(cli.format(), Format::Json);
    let Verb::Ask(Question::Screenshot(screenshot)) = cli.verb else {
        panic!("not a screenshot")
    };
    assert_eq!(screenshot.file, std::path::Path::new("json"));
}

#[test]
fn a_tap_takes_a_point_in_exactly_one_way() {
    for good in [
        "fleetgate tap phone --app b --x 10 --y 20.5",
        "fleetgate tap phone --app b --x -1 --y -2",
        "fleetgate tap phone --app b --at-normalized 0.5,0.25 --taps 2",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate tap phone --app b",
        "fleetgate tap phone --app b --x 10",
        "fleetgate tap phone --app b --x 10 --y nan",
        "fleetgate tap phone --app b --x 10 --y 20 --at-normalized 0.5,0.5",
        "fleetgate tap phone --app b --at-normalized 1.5,0.5",
        "fleetgate tap phone --app b --at-normalized 0.5",
        "fleetgate tap phone --app b --x 1 --y 1 --taps 0",
        "fleetgate tap phone --x 1 --y 1",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_history_filters_by_words_and_refuses_others() {
    let line =
        "fleetgate history --device phone --kind tap --kind long_press --fate pending --since 15m";
    assert!(parse(line).is_ok());
    assert!(parse("fleetgate history --principal token:ci --lease l-1").is_ok());
    assert!(parse("fleetgate history --kind hover").is_err());
    assert!(parse("fleetgate history --limit 0").is_err());
}

#[test]
fn operations_are_filtered_and_limited() {
    for good in [
        "fleetgate operations",
        "fleetgate operations --who token:ci --what deny-call --target l-1 --since 15m -o json",
        "fleetgate operations --limit 5000 --output json",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate operations --limit 0",
        "fleetgate operations --since never",
        "fleetgate operations deny-call",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn events_are_exported_or_followed_and_never_filtered() {
    for good in [
        "fleetgate history --export",
        "fleetgate history --export --after abc",
        "fleetgate history --follow --after abc -o json",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate history --export --follow",
        "fleetgate history --export --device phone",
        "fleetgate history --follow --limit 5",
        "fleetgate history --follow --principal token:ci",
        "fleetgate history --export --lease l-1",
        "fleetgate history --after abc --kind tap",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_command_may_come_with_its_id() {
    for line in [
        "fleetgate tap phone --app b --x 1 --y 1 --command-id c-1",
        "fleetgate type phone --app b text --command-id c-1",
    ] {
        assert!(parse(line).is_ok(), "{line}");
    }
    let given = CommandId {
        command_id: Some("c-1".to_owned()),
    };
    assert_eq!(given.or_new(), "c-1");
    let (one, two) = (mint(), mint());
    assert_ne!(one, two);
}

#[test]
fn phones_are_selected_by_labels_and_events_go_with_a_watch() {
    for good in [
        "fleetgate devices --label pool=ci --label rack=",
        "fleetgate devices --watch --events -o json",
        "fleetgate describe phone --history 0",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate devices --label pool",
        "fleetgate devices --events",
        "fleetgate describe",
        "fleetgate describe phone --history -1",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_phone_is_set_to_something() {
    for good in [
        "fleetgate device set phone --alias anna",
        "fleetgate device set phone --no-alias --label a=b --remove-label c",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate device set phone",
        "fleetgate device set --alias anna",
        "fleetgate device set phone --alias anna --no-alias",
        "fleetgate device set phone --label a",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_operators_do_comes_with_a_reason() {
    for good in [
        "fleetgate cordon phone --reason battery",
        "fleetgate cordon phone --reason battery --for 2h",
        "fleetgate cordon phone --reason battery --until 2999-01-01T00:00:00Z",
        "fleetgate uncordon phone -o json",
        "fleetgate recycle phone",
        "fleetgate recycle phone --reason build --force --wait --timeout 3m",
        "fleetgate drain --reason upgrade",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate cordon phone",
        "fleetgate cordon phone --reason a --for 0s",
        "fleetgate cordon phone --reason a --for 2h --until 2999-01-01T00:00:00Z",
        "fleetgate cordon phone --reason a --until 2001-01-01T00:00:00Z",
        "fleetgate drain",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_token_is_never_an_argument() {
    assert!(parse("fleetgate devices --token fgt_1_2").is_err());
    for good in [
        "fleetgate devices --token-file t --ca c --server-name lab",
        "fleetgate --cert c --key k devices",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    let help = Cli::command().render_long_help().to_string();
    assert!(
        help.contains("FLEETGATE_TOKEN") && help.contains("list of processes"),
        "{help}"
    );
}

#[test]
fn a_phone_is_driven_under_a_lease_and_its_epoch() {
    let lease = |line: &str| {
        let Verb::Ask(Question::Tap(tap)) = parse(line).unwrap().verb else {
            panic!("not a tap")
        };
        tap.lease.named()
    };
    let line = "fleetgate tap phone --app b --x 1 --y 1 --lease l-1 --epoch 7";
    let named = lease(line).unwrap();
    assert_eq!((named.id.as_str(), named.epoch), ("l-1", 7));
    assert_eq!(lease("fleetgate tap phone --app b --x 1 --y 1"), None);
    for bad in [
        "fleetgate tap phone --app b --x 1 --y 1 --lease l-1",
        "fleetgate tap phone --app b --x 1 --y 1 --epoch 7",
        "fleetgate type phone text --app b --lease l-1 --epoch none",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn text_may_be_typed_without_naming_the_phone_that_the_environment_names() {
    for good in [
        "fleetgate type phone text --app b",
        "fleetgate type text --app b",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    assert!(parse("fleetgate type --app b").is_err());
}

#[test]
fn phones_are_wished_for_by_name_or_by_what_they_are() {
    for good in [
        "fleetgate lease create",
        "fleetgate lease create --device anna --device berta --ttl 10m --wait",
        "fleetgate lease create --selector rack=a,tier=gold --selector pool=ci --count 2",
        "fleetgate lease create --model iPhone14,5 --os-version 18 --host rack-a --priority -1",
        "fleetgate lease create --queue-timeout 0s --max-duration 1h --request-id r-1",
        "fleetgate lease create --begin 2999-01-01T00:00:00Z --label a=b --context build=7",
        "fleetgate lease ls --state active --state queued --owner token:ci -o json",
        "fleetgate lease list --all",
        "fleetgate lease show l-1",
        "fleetgate lease watch l-1",
        "fleetgate lease renew l-1 --epoch 3",
        "fleetgate lease release l-1",
        "fleetgate lease revoke l-1 --reason moved --now",
        "fleetgate lease explain l-1",
        "fleetgate lease run --device anna -- make test --count 2",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate lease create --device anna --selector rack=a",
        "fleetgate lease create --device anna --count 2",
        "fleetgate lease create --count 0",
        "fleetgate lease create --ttl 0s",
        "fleetgate lease create --begin 2001-01-01T00:00:00Z",
        "fleetgate lease ls --all --state active",
        "fleetgate lease release",
        "fleetgate lease revoke l-1",
        "fleetgate lease run --device anna",
        "fleetgate lease run --device anna make",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn tokens_are_made_for_a_name_and_a_role() {
    for good in [
        "fleetgate token create --name ci --role operator",
        "fleetgate token create --name ci --role viewer --label a=b --label c=d --expires 90d",
        "fleetgate token create --name ci --role admin --tokens /tmp/tokens.toml",
        "fleetgate token list -o json",
        "fleetgate token revoke 0123 --config fleetgate.toml",
    ] {
        assert!(parse(good).is_ok(), "{good}");
    }
    for bad in [
        "fleetgate token create --name ci",
        "fleetgate token create --role operator",
        "fleetgate token create --name ci --role root",
        "fleetgate token create --name ci --role viewer --expires 0s",
        "fleetgate token revoke",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_verb_has_an_example_in_its_help() {
    fn leaves(command: &clap::Command, found: &mut Vec<(String, String)>) {
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_none() {
            let help = command.clone().render_long_help().to_string();
            found.push((command.get_name().to_owned(), help));
        }
        verbs.for_each(|verb| leaves(verb, found));
    }
    let mut found = Vec::new();
    leaves(&Cli::command(), &mut found);
    for (verb, help) in found.iter().filter(|(verb, _)| verb != "help") {
        assert!(help.contains("Example"), "{verb}: {help}");
    }
    assert!(found.len() > 15);
}

#[test]
fn the_exit_codes_are_in_the_help() {
    let help = Cli::command().render_help().to_string();
    assert!(help.contains("6  fate unknown"), "{help}");
    assert!(help.contains("7  doctor found an error"), "{help}");
    assert!(help.contains("9  no lease"), "{help}");
}
