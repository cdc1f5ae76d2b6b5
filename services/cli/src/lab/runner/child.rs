//! A child that stays behind: in the same process group, and deaf to SIGTERM.

use std::io;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// Ignored signals stay ignored across an exec. It says so once it is deaf, and
/// ends by itself before long, should nobody end it.
const SCRIPT: &str = "trap '' TERM INT; echo deaf; exec sleep 600 >&2";

/// Starts it and waits until no SIGTERM can end it.
pub(super) async fn leave() -> io::Result<u32> {
    let mut child = Command::new("sh")
        .args(["-c", SCRIPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await?;
    if line != "deaf\n" {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(pid)
}
