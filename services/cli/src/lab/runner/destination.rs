//! The phone that `xcodebuild`'s own arguments mean.

/// The option that names it.
const DESTINATION: &str = "-destination";

/// The UDID in the arguments' destination, such as
/// `-destination platform=iOS,id=00008110-00F1EE7000000001`.
pub(super) fn udid(arguments: &[String]) -> Result<String, String> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word != DESTINATION {
            continue;
        }
        let destination = words
            .next()
            .ok_or_else(|| format!("{DESTINATION} names no destination"))?;
        let id = destination
            .split(',')
            .find_map(|part| part.trim().strip_prefix("id="));
        return id
            .map(str::to_owned)
            .ok_or_else(|| format!("{DESTINATION} {destination:?} names no id"));
    }
    Err(format!(
        "neither --udid nor a {DESTINATION} says which phone"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<String, String> {
        let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
        udid(&words)
    }

    #[test]
    fn the_documented_command_line_names_its_phone() {
        let line = "test-without-building -only-testing A/B/c -parallel-testing-enabled NO \
                    -destination-timeout 20 -destination platform=iOS,id=00008110-00F1EE7000000001";
        assert_eq!(of(line).unwrap(), "00008110-00F1EE7000000001");
        assert_eq!(of("-destination id=X,platform=iOS").unwrap(), "X");
    }

    #[test]
    fn a_line_without_a_phone_is_refused() {
        for line in ["build", "-destination", "-destination platform=iOS,name=id"] {
            assert!(of(line).is_err(), "{line}");
        }
    }
}
