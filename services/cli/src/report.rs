//! How a failure goes to stderr: for people, or as one JSON document.

use crate::exit::Exit;
use crate::output::Format;
use crate::rejected::Rejected;

/// Everything that is known of a failure.
pub(crate) fn told(error: &anyhow::Error, format: Format) -> String {
    match (error.downcast_ref::<Rejected>(), format) {
        (Some(rejected), Format::Table) => rejected.text().trim_end().to_owned(),
        (Some(rejected), Format::Json) => rejected.json().to_string(),
        (None, Format::Table) => format!("error: {}", in_words(error)),
        (None, Format::Json) => {
            let exit_code = Exit::of(error).number();
            let error = serde_json::json!({ "message": in_words(error), "exit_code": exit_code });
            serde_json::json!({ "error": error }).to_string()
        }
    }
}

/// An error and its causes. Many errors repeat their cause in their own words:
/// what was said is not said again.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error
        .chain()
        .map(|cause| cause.to_string().trim_end().to_owned())
    {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::exit::Misuse;

    #[test]
    fn causes_are_told_once() {
        let error = anyhow!("refused")
            .context("cannot listen: refused")
            .context("step 1");
        assert_eq!(in_words(&error), "step 1: cannot listen: refused");
    }

    #[test]
    fn as_json_an_error_is_one_document_with_its_exit_code() {
        let error = anyhow::Error::from(Misuse("there is no text to type".to_owned()));
        let told: serde_json::Value = serde_json::from_str(&told(&error, Format::Json)).unwrap();
        let expected = serde_json::json!({ "message": "there is no text to type", "exit_code": 2 });
        assert_eq!(told["error"], expected);
    }
}
