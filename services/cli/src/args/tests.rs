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
        let context = parse(line).unwrap().context();
        assert_eq!(context.server.to_string(), "http://lab:7701", "{line}");
        assert_eq!(context.timeout, Some(Duration::from_secs(2)), "{line}");
        assert_eq!(context.format, Format::Json, "{line}");
    }
}

#[test]
fn the_file_of_a_screenshot_and_its_output_format_do_not_clash() {
    let cli = parse("fleetgate screenshot phone -o json --output json").unwrap();
    assert_eq!(cli.context().format, Format::Json);
    let Verb::Screenshot(screenshot) = cli.verb else {
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
    assert!(parse("fleetgate history --kind hover").is_err());
    assert!(parse("fleetgate history --limit 0").is_err());
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
}
