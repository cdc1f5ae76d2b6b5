//! What a lab says when it is up: what there is, and how to connect to it.

use std::collections::BTreeSet;

use fleetgate_simulator::Phone;

use crate::output::{columns, pairs};

/// Where a lab can be reached.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Its usbmuxd.
    pub(super) usbmuxd: Vec<String>,
    /// Its control API, if that is served.
    pub(super) control: Option<String>,
    /// The program that launches a runner.
    pub(super) program: String,
}

/// What there is, and how to connect to it.
pub(super) fn describe(phones: &[Phone], places: &Places) -> String {
    let ports = phones.iter().map(|phone| phone.report().runner);
    let ports: Vec<_> = ports
        .map(|runner| runner.map(|runner| runner.port))
        .collect();
    let rows = phones.iter().zip(&ports).map(|(phone, port)| {
        let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
        [phone.udid().to_string(), phone.name().to_owned(), port]
    });
    let table = columns(["UDID", "NAME", "RUNNER PORT"], rows);
    let usbmuxd = ("usbmuxd", Some(places.usbmuxd.join(", ")));
    let facts = pairs(0, [usbmuxd, ("control", places.control.clone())]);
    let listening: BTreeSet<_> = ports.iter().flatten().collect();
    let port = listening.first().filter(|_| listening.len() == 1);
    let port = port
        .map(|port| format!("FLEETGATE_RUNNER__PORT={port} "))
        .unwrap_or_default();
    let place = places.usbmuxd.first().map(String::as_str);
    let place = place.unwrap_or_default();
    let connect = format!("FLEETGATE_USBMUXD__ADDRESS={place} {port}fleetgate serve");
    let connect = format!("Connect a gateway with\n\n  {connect}\n");
    format!("{table}\n{facts}\n{connect}{}", launching(phones, places))
}

/// How runners are launched, where they can be.
fn launching(
    phones: &[Phone],
    Places {
        control, program, ..
    }: &Places,
) -> String {
    let (Some(control), Some(phone)) = (control, phones.first()) else {
        return String::new();
    };
    let udid = phone.udid();
    let argv = [
        program,
        "lab",
        "runner",
        "--control",
        control,
        "--udid",
        "{udid}",
    ];
    let argv = argv.map(quoted).join(", ");
    format!(
        "\nA runner lives as long as the process that launched it\n\n  \
         fleetgate lab runner --control {control} --udid {udid}\n\n\
         and a gateway launches them with this in its configuration file\n\n  \
         [[launch]]\n  name = \"lab\"\n  labels = {{}}\n  argv = [{argv}]\n"
    )
}

/// A basic string of TOML, whose escapes are among JSON's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use fleetgate_simulator::{Lab, Scenario};

    use super::*;

    fn places(control: Option<&str>) -> Places {
        Places {
            usbmuxd: vec!["/tmp/mux".to_owned()],
            control: control.map(str::to_owned),
            program: "/opt/a \"b\"/fleetgate".to_owned(),
        }
    }

    #[tokio::test]
    async fn one_port_for_all_is_worth_a_variable() {
        let lab = Lab::start(Scenario::fleet(2));
        let text = describe(&lab.phones(), &places(None));
        let command =
            "  FLEETGATE_USBMUXD__ADDRESS=/tmp/mux FLEETGATE_RUNNER__PORT=8100 fleetgate serve\n";
        assert!(text.ends_with(command), "{text}");
        lab.phones()[1].restart_runner(8200);
        let text = describe(&lab.phones(), &places(None));
        assert!(text.ends_with("=/tmp/mux fleetgate serve\n"), "{text}");
    }

    #[tokio::test]
    async fn where_runners_can_be_launched_it_is_said_how() {
        let lab = Lab::start(Scenario::fleet(1).without_runners());
        let text = describe(&lab.phones(), &places(Some("http://127.0.0.1:9")));
        let argv = r#"argv = ["/opt/a \"b\"/fleetgate", "lab", "runner", "--control", "http://127.0.0.1:9", "--udid", "{udid}"]"#;
        assert!(text.contains(argv), "{text}");
        assert!(!text.contains("RUNNER__PORT"), "{text}");
    }
}
