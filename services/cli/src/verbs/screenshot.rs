//! `screenshot`: a picture of a phone's screen, into a file or to stdout.
//!
//! Invariant: a file holds a whole picture or is left as it was. The picture is
//! written beside its destination and moved over it.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;
use fleetgate_proto::v1::capture_screenshot_response::Part;
use fleetgate_proto::v1::{CaptureScreenshotRequest, ScreenshotHeader};
use serde::Serialize;
use tokio::time::timeout;

use crate::client::{Asked, Client, Context, mint};
use crate::output::{bytes, note, print};
use crate::view::receipt::ReceiptView;

/// What every PNG begins with.
const PNG_SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];

/// Save a picture of a phone's screen.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    fleetgate screenshot anna -o screen.png\n  \
    fleetgate screenshot anna -o - | magick png:- -resize 25% small.png")]
pub(crate) struct Screenshot {
    /// UDID or alias
    #[arg(env = "FLEETGATE_DEVICE", hide_env_values = true)]
    device: String,
    /// Where the PNG goes, replacing what is there; - for stdout
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// A picture and what came with it.
#[derive(Debug)]
pub(crate) struct Picture {
    /// What the gateway says about it.
    pub(crate) header: ScreenshotHeader,
    /// The PNG.
    pub(crate) png: Vec<u8>,
}

/// A saved picture as JSON.
#[derive(Debug, Serialize)]
struct SavedView {
    receipt: Option<ReceiptView>,
    file: String,
    media_type: String,
    size_bytes: u64,
    width: u32,
    height: u32,
}

impl Screenshot {
    /// Takes the picture and saves it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let Picture { header, png } = capture(&client, &self.device).await?;
        let view = SavedView {
            receipt: header.receipt.map(ReceiptView::from),
            file: self.file.display().to_string(),
            media_type: header.media_type,
            size_bytes: header.size_bytes,
            width: header.width,
            height: header.height,
        };
        if self.file == Path::new("-") {
            bytes(&png)?;
            note(&view.text());
            return Ok(());
        }
        save(&self.file, &png).with_context(|| format!("cannot write {}", self.file.display()))?;
        print(context.format, &view, SavedView::text)
    }
}

/// Takes a picture and makes sure that all of it came.
pub(crate) async fn capture(client: &Client, device: &str) -> anyhow::Result<Picture> {
    let command_id = mint();
    let receiving = receive(client, device, &command_id);
    // The connection's patience is for the first answer only, not the stream.
    match client.context().patience() {
        Some(limit) => match timeout(limit, receiving).await {
            Ok(received) => received,
            Err(_) => Err(client.expired(Asked::read(&command_id)).into()),
        },
        None => receiving.await,
    }
}

async fn receive(client: &Client, device: &str, command_id: &str) -> anyhow::Result<Picture> {
    let request = CaptureScreenshotRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
    };
    let rejected = |status| client.rejected(&status, Asked::read(command_id));
    let reply = client
        .automation()
        .capture_screenshot(client.request(request))
        .await;
    let mut parts = reply.map_err(rejected)?.into_inner();

    let mut header = None;
    let mut png = Vec::new();
    while let Some(message) = parts.message().await.map_err(rejected)? {
        match message.part {
            Some(Part::Header(first)) => header = Some(first),
            Some(Part::Chunk(chunk)) => png.extend_from_slice(&chunk),
            None => {}
        }
    }
    let header = header.context("the gateway sent no header")?;
    let size = u64::try_from(png.len())?;
    ensure!(
        size == header.size_bytes,
        "{size} of {} bytes came",
        header.size_bytes
    );
    ensure!(png.starts_with(&PNG_SIGNATURE), "what came is not a PNG");
    Ok(Picture { header, png })
}

/// Puts a file in place at once, or not at all.
pub(crate) fn save(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let target = match fs::metadata(path) {
        // A device or a pipe is written to, not replaced.
        Ok(found) if !found.is_file() => return Ok(fs::write(path, content)?),
        // A link stays, and the file behind it is replaced.
        Ok(_) => fs::canonicalize(path)?,
        Err(_) => path.to_owned(),
    };
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".fleetgate-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.persist(&target)?;
    Ok(())
}

impl SavedView {
    fn text(&self) -> String {
        let Self {
            file,
            size_bytes,
            width,
            height,
            ..
        } = self;
        format!(
            "{file}: {width} x {height}, {size_bytes} bytes\n{}",
            self.receipt
                .as_ref()
                .map(ReceiptView::text)
                .unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_saved_file_replaces_the_old_one_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("screen.png");
        save(&path, b"old").unwrap();
        save(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(entries(directory.path()), 1);
    }

    #[test]
    fn a_link_stays_and_the_file_behind_it_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        save(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        save(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(save(&directory.path().join("missing/screen.png"), b"new").is_err());
        assert_eq!(entries(directory.path()), 0);
    }
}
