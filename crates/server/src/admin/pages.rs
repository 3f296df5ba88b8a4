//! Pages that can be asked for, and by whom: a page is a row.

use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use snugly_store::system_time;
use tracing::warn;

use super::{dashboard, health, host, token};
use crate::metrics;
use crate::state::Server;

const TEXT: &str = "text/plain; charset=utf-8";

/// Something to ask for.
struct Page {
    path: &'static str,
    content_type: &'static str,
    /// Whether everybody who reaches the endpoint may see it, token or not.
    is_open: bool,
    write: fn(&Server) -> (StatusCode, String),
}

const PAGES: &[Page] = &[
    Page {
        path: "/",
        content_type: "text/html; charset=utf-8",
        is_open: true,
        write: |_| (StatusCode::OK, dashboard::HTML.to_owned()),
    },
    Page {
        path: "/metrics",
        content_type: metrics::CONTENT_TYPE,
        is_open: false,
        write: |server| (StatusCode::OK, metrics::openmetrics(server)),
    },
    Page { path: "/health", content_type: TEXT, is_open: false, write: health::health },
    Page { path: "/healthz", content_type: TEXT, is_open: true, write: health::alive },
    Page { path: "/readyz", content_type: TEXT, is_open: true, write: health::ready },
];

/// The answer to a request from this address.
pub(super) fn respond<B>(
    server: &Server,
    request: &Request<B>,
    address: SocketAddr,
) -> Response<Full<Bytes>> {
    let Some(page) = PAGES.iter().find(|page| page.path == request.uri().path()) else {
        let paths: Vec<_> = PAGES.iter().map(|page| page.path).collect();
        return answer(StatusCode::NOT_FOUND, TEXT, format!("there is only {}\n", paths.join(", ")));
    };
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let refused = answer(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
        return with_header(refused, ALLOW, "GET, HEAD");
    }
    let configuration = server.configuration();
    if !page.is_open
        && configuration.admin_token.is_empty()
        && !host::is_meant(request.headers(), address, &configuration.admin_address)
    {
        let told = "on this machine the endpoint is asked by address, as localhost, or with a token (--admin-token-file)\n";
        return answer(StatusCode::FORBIDDEN, TEXT, told.to_owned());
    }
    if !page.is_open && !token::admits(&configuration.admin_token, request.headers()) {
        if token::given(request.headers()).is_some()
            && let Some(count) = server.wrong_tokens_log.note(system_time())
        {
            warn!(%address, count, "requests with a wrong token were refused at the admin endpoint");
        }
        let told =
            "this page takes the token of --admin-token-file: Authorization: Bearer TOKEN\n".to_owned();
        return with_header(
            answer(StatusCode::UNAUTHORIZED, TEXT, told),
            WWW_AUTHENTICATE,
            "Bearer realm=\"snugly\"",
        );
    }
    let (status, text) = (page.write)(server);
    answer(status, page.content_type, text)
}

/// An answer, which is of this moment only.
fn answer(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, dashboard::POLICY.clone());
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn with_header(
    mut response: Response<Full<Bytes>>,
    name: HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    response
}
