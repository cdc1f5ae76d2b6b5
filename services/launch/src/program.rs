//! Finds what is to be run before anything is started, so that a program that
//! is not there is named, instead of a shell's complaint in a log.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::error::LaunchError;

/// Where programs are looked for if nothing says.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// The absolute working directory.
pub(crate) fn working_directory(configured: Option<&Path>) -> Result<PathBuf, LaunchError> {
    let path = configured.unwrap_or(Path::new("."));
    let usable = || {
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        access(path, Access::EXEC_OK)?;
        match configured {
            Some(_) => std::path::absolute(path),
            None => std::env::current_dir(),
        }
    };
    usable().map_err(|source| LaunchError::WorkingDirectory {
        directory: path.to_owned(),
        source,
    })
}

/// The absolute path of a program: as it is if its name has a slash (then it is
/// relative to the working directory), otherwise from `path`.
pub(crate) fn find(
    program: &OsStr,
    directory: &Path,
    path: Option<&OsStr>,
) -> Result<PathBuf, LaunchError> {
    let name = || program.to_string_lossy().into_owned();
    if program.as_encoded_bytes().contains(&b'/') {
        let found = directory.join(program);
        return match executable(&found) {
            Ok(()) => Ok(found),
            Err(error) if is_absent(&error) => Err(LaunchError::NotFound {
                program: name(),
                path: None,
            }),
            Err(source) => Err(LaunchError::NotExecutable {
                program: name(),
                found,
                source,
            }),
        };
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    let mut unusable = None;
    for place in std::env::split_paths(path) {
        let found = directory.join(place).join(program);
        match executable(&found) {
            Ok(()) => return Ok(found),
            Err(error) if is_absent(&error) => {}
            Err(source) => {
                unusable.get_or_insert((found, source));
            }
        }
    }
    Err(match unusable {
        Some((found, source)) => LaunchError::NotExecutable {
            program: name(),
            found,
            source,
        },
        None => LaunchError::NotFound {
            program: name(),
            path: Some(path.to_string_lossy().into_owned()),
        },
    })
}

fn executable(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(access(path, Access::EXEC_OK)?)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory with `name` in it, of this mode.
    fn with(name: &str, mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        directory
    }

    #[test]
    fn a_program_is_looked_for_in_the_path_and_the_first_that_can_be_run_is_taken() {
        let (plain, runs) = (with("tool", 0o600), with("tool", 0o700));
        let path = std::env::join_paths([plain.path(), runs.path()]).unwrap();
        let found = find(OsStr::new("tool"), Path::new("/"), Some(&path)).unwrap();
        assert_eq!(found, runs.path().join("tool"));
    }

    #[test]
    fn a_program_with_a_slash_is_relative_to_the_working_directory() {
        let directory = with("tool", 0o700);
        let found = find(OsStr::new("./tool"), directory.path(), None).unwrap();
        assert!(found.is_absolute());
        assert!(found.starts_with(directory.path()));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_where_it_was_looked_for() {
        let path = OsStr::new("/nowhere:/nothing");
        let error = find(OsStr::new("xcodebuild"), Path::new("/"), Some(path)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the program 'xcodebuild' was not found in PATH=/nowhere:/nothing"
        );
        let error = find(OsStr::new("/no/such"), Path::new("/"), None).unwrap_err();
        assert_eq!(error.to_string(), "the program '/no/such' was not found");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_named_with_its_place() {
        let plain = with("tool", 0o600);
        for name in ["tool", "./tool"] {
            let path = plain.path().as_os_str();
            let error = find(OsStr::new(name), plain.path(), Some(path)).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("'{name}' at /")), "{text}");
            assert!(text.contains("cannot be executed"), "{text}");
        }
        let error = find(OsStr::new("/tmp"), Path::new("/"), None).unwrap_err();
        assert!(matches!(error, LaunchError::NotExecutable { .. }));
    }

    #[test]
    fn a_working_directory_that_is_missing_or_a_file_is_named() {
        for (path, said) in [("/no/such", "/no/such"), ("/etc/passwd", "/etc/passwd")] {
            let error = working_directory(Some(Path::new(path))).unwrap_err();
            assert!(error.to_string().contains(said));
        }
        assert!(working_directory(None).unwrap().is_absolute());
    }
}
