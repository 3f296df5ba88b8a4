//! The dashboard: a page that reads the metrics in the browser and draws them. It has no data of its own.
//!
//! Patterns of keys are foreign bytes. Beside the page's own care the browser is told to run nothing but the page's own
//! script, and to load nothing from elsewhere.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use ring::digest::{SHA256, digest};

pub(super) const HTML: &str = include_str!("dashboard.html");

/// The Content-Security-Policy of the page, and of whatever else is answered.
pub(super) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        source_of("script"),
        source_of("style"),
    );
    HeaderValue::from_str(&policy).expect("it is printable")
});

/// The hash by which the policy knows the page's only element with this name.
fn source_of(name: &str) -> String {
    let (_, behind) = HTML.split_once(&format!("<{name}>")).expect("the page has one");
    let (content, _) = behind.split_once(&format!("</{name}>")).expect("it is closed");
    format!("sha256-{}", STANDARD.encode(digest(&SHA256, content.as_bytes())))
}
