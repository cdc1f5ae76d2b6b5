//! What cannot be started, and how that is said.

use std::fs;

use fleetgate_launch::{LaunchError, LaunchSpec, Launcher};

use crate::support::{Place, device, soon, story};

async fn refused(place: &Place, launcher: &Launcher, spec: &LaunchSpec) -> LaunchError {
    let error = launcher.start(&device(), spec).await.unwrap_err();
    assert!(!place.record(&device()).exists());
    error
}

#[tokio::test]
async fn what_cannot_be_run_is_named_and_the_last_log_stays() {
    let place = Place::new();
    let launcher = place.open();
    let mut running = launcher
        .start(&device(), &place.script("echo before"))
        .await
        .unwrap();
    story(&mut running).await;
    soon(running.stop()).await;

    let error = refused(&place, &launcher, &LaunchSpec::new(["no-such-program"])).await;
    assert!(
        error
            .to_string()
            .contains("'no-such-program' was not found in PATH="),
        "{error}"
    );
    fs::write(place.file("plain"), "").unwrap();
    let plain = place.file("plain").display().to_string();
    let error = refused(&place, &launcher, &LaunchSpec::new([plain.clone()])).await;
    assert!(
        matches!(error, LaunchError::NotExecutable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains(&plain), "{error}");
    let mut spec = LaunchSpec::new(["true"]);
    spec.directory = Some(place.file("nowhere"));
    let error = refused(&place, &launcher, &spec).await;
    assert!(
        matches!(error, LaunchError::WorkingDirectory { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("/nowhere"), "{error}");
    let error = refused(&place, &launcher, &LaunchSpec::new(["true", "{phone}"])).await;
    assert!(matches!(error, LaunchError::Spec(_)), "{error:?}");

    assert_eq!(launcher.log_tail(&device()), ["before"]);
}

#[tokio::test]
async fn a_program_is_looked_for_in_the_path_of_its_own_environment() {
    let place = Place::new();
    let launcher = place.open();
    let mut spec = LaunchSpec::new(["echo", "found"]);
    spec.env
        .insert("PATH".to_owned(), "/no/such/place".to_owned());
    let error = refused(&place, &launcher, &spec).await;
    assert!(
        error.to_string().ends_with("in PATH=/no/such/place"),
        "{error}"
    );
    spec.env
        .insert("PATH".to_owned(), "/bin:/usr/bin".to_owned());
    let mut running = launcher.start(&device(), &spec).await.unwrap();
    story(&mut running).await;
    assert_eq!(launcher.log_tail(&device()), ["found"]);
}

#[tokio::test]
async fn a_program_that_the_kernel_refuses_ends_and_its_log_says_why() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let launcher = place.open();
    let script = place.file("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let spec = LaunchSpec::new([script.display().to_string()]);
    let mut running = launcher.start(&device(), &spec).await.unwrap();
    let events = story(&mut running).await;
    assert_eq!(events.len(), 1);
    let tail = launcher.log_tail(&device());
    assert!(tail.iter().any(|line| line.contains("script")), "{tail:?}");
}

#[tokio::test]
async fn a_second_launcher_is_refused_for_as_long_as_a_runner_of_the_first_lives() {
    let place = Place::new();
    let launcher = place.open();
    let running = launcher
        .start(&device(), &place.script("exec sleep 600"))
        .await
        .unwrap();
    drop(launcher);
    let refused = Launcher::open(place.launches()).unwrap_err();
    assert!(matches!(refused, LaunchError::InUse { .. }), "{refused:?}");
    soon(running.stop()).await;
    place.open();
}
