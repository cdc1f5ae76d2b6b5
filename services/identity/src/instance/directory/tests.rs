//! Where records are, by the environment.

use super::*;

fn named(variables: &[(&str, &str)]) -> Option<PathBuf> {
    let find = |name: &str| {
        let mut variables = variables.iter();
        variables.find_map(|(there, value)| (*there == name).then(|| value.into()))
    };
    let found = Instances::named_by(find);
    found.ok().map(|instances| instances.directory)
}

#[test]
fn records_are_where_the_environment_says() {
    let own = ("FLEETGATE_RUNTIME_DIR", "/own");
    let xdg = ("XDG_RUNTIME_DIR", "/run/user/7");
    let home = ("HOME", "/home/a");
    let is = |variables: &[(&str, &str)], path: &str| {
        assert_eq!(named(variables), Some(PathBuf::from(path)));
    };
    is(&[own, xdg, home], "/own");
    is(&[xdg, home], "/run/user/7/fleetgate");
    is(&[home], "/home/a/.local/state/fleetgate/run");
    is(
        &[("FLEETGATE_RUNTIME_DIR", ""), xdg],
        "/run/user/7/fleetgate",
    );
    is(
        &[("XDG_RUNTIME_DIR", "run"), home],
        "/home/a/.local/state/fleetgate/run",
    );
    assert_eq!(named(&[]), None);
    assert_eq!(named(&[("HOME", "a")]), None);
}

#[test]
fn a_relative_directory_is_refused_as_it_is_another_for_each_program() {
    let find = |name: &str| (name == "FLEETGATE_RUNTIME_DIR").then(|| "run".into());
    let error = Instances::named_by(find).unwrap_err();
    assert!(error.to_string().contains("absolute"), "{error}");
}
