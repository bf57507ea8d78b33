//! A page as a picture or on paper: two round trips, one for the size and one for the picture.

use serde::Deserialize;
use serde_json::Value;
use tabmux_driver::{Area, DriverError, Image, ImageFormat, Orientation, Result, Shot};

use super::CdpPage;
use crate::protocol::page::{CaptureScreenshot, GetLayoutMetrics, PrintToPDF, Viewport};

/// The longest side Chromium can draw at once; beyond it the picture repeats itself.
const MAX_DRAWN: f64 = 16_384.0;

#[derive(Deserialize)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl CdpPage {
    pub(super) async fn picture(&self, shot: &Shot) -> Result<Image> {
        let place = self.place(&shot.area).await?;
        let longest = place.width.max(place.height).max(1.0);
        let allowed = shot.max_side.map_or(MAX_DRAWN, |side| f64::from(side).min(MAX_DRAWN));
        let scale = (allowed / longest).min(1.0);
        let (format, quality) = match shot.format {
            ImageFormat::Png => ("png", None),
            ImageFormat::Jpeg { quality } => ("jpeg", Some(i64::from(quality.min(100)))),
        };
        let capture = CaptureScreenshot {
            format: Some(format.into()),
            quality,
            clip: Some(Viewport { x: place.x, y: place.y, width: place.width, height: place.height, scale }),
            capture_beyond_viewport: Some(shot.area != Area::Viewport),
            optimize_for_speed: Some(true),
            ..CaptureScreenshot::default()
        };
        let base64 = self.call(&capture).await?.data;
        let side = |length: f64| (length * scale).round().clamp(1.0, allowed) as u32;
        Ok(Image { base64, format: shot.format, width: side(place.width), height: side(place.height) })
    }

    async fn place(&self, area: &Area) -> Result<Place> {
        if let Area::Element(selector) = area {
            return self.element(selector).await;
        }
        let metrics = self.call(&GetLayoutMetrics::default()).await?;
        let view = metrics.css_visual_viewport;
        let whole = metrics.css_content_size;
        Ok(match area {
            Area::FullPage => Place { x: 0.0, y: 0.0, width: whole.width.max(1.0), height: whole.height.max(1.0) },
            _ => Place { x: view.page_x, y: view.page_y, width: view.client_width.max(1.0), height: view.client_height.max(1.0) },
        })
    }

    async fn element(&self, selector: &str) -> Result<Place> {
        let quoted = Value::from(selector).to_string();
        let script = format!(
            "(() => {{ const found = document.querySelector({quoted}); if (!found) return null; \
             const box = found.getBoundingClientRect(); \
             return {{ x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height }}; }})()"
        );
        let place: Option<Place> = serde_json::from_value(self.run(&script).await?).ok().flatten();
        match place {
            Some(place) if place.width > 0.0 && place.height > 0.0 => Ok(place),
            _ => Err(DriverError::ElementNotFound(selector.to_owned())),
        }
    }

    pub(super) async fn print(&self, orientation: Orientation) -> Result<String> {
        let print =
            PrintToPDF { landscape: Some(orientation == Orientation::Landscape), print_background: Some(true), ..PrintToPDF::default() };
        Ok(self.call(&print).await?.data)
    }
}
