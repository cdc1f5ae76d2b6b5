//! Another program that has the ledger's file open: Python, since nothing of
//! ours may write into a ledger but the ledger, and nobody else can lock it.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::place::run;
use crate::soon;

/// Takes the lock, says so, and holds it until its input ends.
const HOLD: &str = "\
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute('BEGIN IMMEDIATE')
print('held', flush=True)
sys.stdin.read()
db.execute('ROLLBACK')
";

/// Waits until a query finds something.
const AWAIT: &str = "\
import sqlite3, sys, time
db = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True, timeout=20)
end = time.monotonic() + 20
while not db.execute(sys.argv[2], sys.argv[3:]).fetchone():
    if time.monotonic() > end: sys.exit('nothing came')
    time.sleep(0.002)
";

/// The write lock of a ledger, held by another program.
#[derive(Debug)]
pub struct WriteLock(Child);

impl WriteLock {
    /// Takes it, as soon as the gateway lets go of it.
    pub async fn take(ledger: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", HOLD])
            .arg(ledger)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 runs");
        let stdout = child.stdout.take().expect("standard output is piped");
        let mut lines = BufReader::new(stdout).lines();
        let line = soon("the lock", lines.next_line()).await;
        assert_eq!(line.expect("readable output").as_deref(), Some("held"));
        Self(child)
    }

    /// Gives it back.
    pub async fn release(mut self) {
        drop(self.0.stdin.take());
        let ended = soon("the end of the lock", self.0.wait()).await;
        assert!(ended.expect("a status").success());
    }
}

/// Waits until the file itself holds a command's intent.
pub async fn until_intended(ledger: &Path, command_id: &str) {
    let query = "SELECT 1 FROM commands WHERE command_id = ?";
    until_found(ledger, query, command_id).await;
}

/// Waits until the file itself holds a command's fate.
pub async fn until_concluded(ledger: &Path, command_id: &str) {
    let query = "SELECT 1 FROM fates JOIN commands ON commands.seq = command_seq \
                 WHERE command_id = ?";
    until_found(ledger, query, command_id).await;
}

async fn until_found(ledger: &Path, query: &str, parameter: &str) {
    let mut python = Command::new("python3");
    python
        .args(["-c", AWAIT])
        .arg(ledger)
        .args([query, parameter])
        .kill_on_drop(true);
    let said = run(&mut python, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
}
