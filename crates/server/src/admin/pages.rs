//! What can be asked for: a page is a row.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use super::health;
use crate::metrics;
use crate::state::Server;

const TEXT: &str = "text/plain; charset=utf-8";

/// Something to ask for.
struct Page {
    path: &'static str,
    content_type: &'static str,
    write: fn(&Server) -> (StatusCode, String),
}

const PAGES: &[Page] = &[
    Page {
        path: "/metrics",
        content_type: metrics::CONTENT_TYPE,
        write: |server| (StatusCode::OK, metrics::openmetrics(server)),
    },
    Page { path: "/health", content_type: TEXT, write: health::health },
    Page { path: "/healthz", content_type: TEXT, write: health::alive },
    Page { path: "/readyz", content_type: TEXT, write: health::ready },
];

/// The answer to a request.
pub(super) fn respond(server: &Server, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let Some(page) = PAGES.iter().find(|page| page.path == path) else {
        let paths: Vec<_> = PAGES.iter().map(|page| page.path).collect();
        return answer(StatusCode::NOT_FOUND, TEXT, format!("there is only {}\n", paths.join(", ")));
    };
    if ![Method::GET, Method::HEAD].contains(method) {
        let mut refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let (status, text) = (page.write)(server);
    answer(status, page.content_type, text)
}

fn answer(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
