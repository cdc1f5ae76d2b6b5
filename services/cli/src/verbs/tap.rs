//! `tap`: one or several taps on a point of an app.

use std::num::NonZeroU32;

use clap::{ArgGroup, Args};
use fleetgate_proto::v1::point::Place;
use fleetgate_proto::v1::{AbsolutePoint, NormalizedPoint, Point, TapRequest, TapResponse};

use crate::args::{CommandId, ShortOutput, UnderLease};
use crate::client::{Asked, Client, Context, mint};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::receipt::DoneView;

/// Tap a point of an app.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("point").args(["x", "at_normalized"]).required(true),
    after_help = "Examples:\n  \
        fleetgate tap anna --app com.example.shop --x 195 --y 420\n  \
        fleetgate tap anna --app com.example.shop --at-normalized 0.5,0.5 --taps 2"
)]
pub(crate) struct Tap {
    /// UDID or alias
    #[arg(env = "FLEETGATE_DEVICE", hide_env_values = true)]
    device: String,
    /// The app's bundle id
    #[arg(long, value_name = "BUNDLE_ID")]
    app: String,
    /// Points from the left edge of the app
    #[arg(long, requires = "y", value_parser = coordinate, allow_negative_numbers = true)]
    x: Option<f64>,
    /// Points from the top edge of the app
    #[arg(long, requires = "x", value_parser = coordinate, allow_negative_numbers = true)]
    y: Option<f64>,
    /// Fractions of the app's viewport, each from 0 to 1
    #[arg(long, value_name = "X,Y", value_parser = normalized, conflicts_with_all = ["x", "y"])]
    at_normalized: Option<NormalizedPoint>,
    /// How often; 2 is one double tap
    #[arg(long, value_name = "N")]
    taps: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) lease: UnderLease,
    #[command(flatten)]
    command_id: CommandId,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Tap {
    /// Taps.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let place = place(self.x, self.y, self.at_normalized);
        let request = TapRequest {
            device: self.device,
            command_id: Some(self.command_id.or_new()),
            lease: self.lease.named(),
            app_bundle_id: self.app,
            point: Some(Point { place }),
            number_of_taps: self.taps.map(NonZeroU32::get),
        };
        let reply = ask(&client, request).await?;
        print(
            context.format,
            &DoneView::new(reply.receipt, reply.message),
            DoneView::text,
        )
    }
}

/// Has a point tapped.
pub(crate) async fn send(
    client: &Client,
    device: &str,
    app: &str,
    place: Option<Place>,
    taps: Option<NonZeroU32>,
) -> Result<TapResponse, Rejected> {
    let request = TapRequest {
        device: device.to_owned(),
        command_id: Some(mint()),
        lease: None,
        app_bundle_id: app.to_owned(),
        point: Some(Point { place }),
        number_of_taps: taps.map(NonZeroU32::get),
    };
    ask(client, request).await
}

async fn ask(client: &Client, request: TapRequest) -> Result<TapResponse, Rejected> {
    let id = request.command_id.clone().unwrap_or_default();
    let reply = client.automation().tap(client.request(request)).await;
    Ok(reply
        .map_err(|status| client.rejected(&status, Asked::mutation(&id)))?
        .into_inner())
}

/// The point that the arguments give; clap has seen to it that there is one.
fn place(x: Option<f64>, y: Option<f64>, normalized: Option<NormalizedPoint>) -> Option<Place> {
    let absolute = x
        .zip(y)
        .map(|(x, y)| Place::Absolute(AbsolutePoint { x, y }));
    absolute.or(normalized.map(Place::Normalized))
}

fn coordinate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err("must be finite".to_owned())
    }
}

fn normalized(text: &str) -> Result<NormalizedPoint, String> {
    let (x, y) = text
        .split_once(',')
        .ok_or("two numbers are needed, as in 0.5,0.25")?;
    Ok(NormalizedPoint {
        x: fraction(x)?,
        y: fraction(y)?,
    })
}

fn fraction(text: &str) -> Result<f64, String> {
    let number = coordinate(text.trim())?;
    if (0.0..=1.0).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not from 0 to 1"))
    }
}
