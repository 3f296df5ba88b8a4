//! The name under which the endpoint is asked: a page of a stranger, open in a browser on this machine, may let its own name
//! lead here (DNS rebinding), and then ask as if it were the dashboard.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::HOST;

/// Returns whether a request from this address is meant for the endpoint at `admin_address`. Browsers elsewhere must reach it
/// first, and it may have any name there.
pub(super) fn is_meant(headers: &HeaderMap, address: SocketAddr, admin_address: &str) -> bool {
    let Some(asked) = headers.get(HOST) else { return true };
    if !address.ip().to_canonical().is_loopback() {
        return true;
    }
    let Ok(asked) = asked.to_str() else { return false };
    let (asked, own) = (without_port(asked), without_port(admin_address));
    asked.parse::<IpAddr>().is_ok()
        || asked.eq_ignore_ascii_case("localhost")
        || asked.eq_ignore_ascii_case(own)
}

/// The host of a host and a port, without the brackets of IPv6.
fn without_port(place: &str) -> &str {
    let host = match place.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(':') => host,
        _ => place,
    };
    host.trim_matches(['[', ']'])
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn meant(host: &str, from: &str) -> bool {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).expect("a header"))]);
        is_meant(&headers, SocketAddr::new(from.parse().expect("an address"), 1), "cache.local:7686")
    }

    #[test]
    fn on_this_machine_it_is_asked_by_address_or_by_a_name_of_its_own() {
        for host in [
            "127.0.0.1:7686",
            "127.0.0.1",
            "[::1]:7686",
            "[::1]",
            "localhost:7686",
            "Localhost",
            "cache.local",
        ] {
            assert!(meant(host, "127.0.0.1") && meant(host, "::1"), "{host}");
        }
        for host in ["stranger.example:7686", "localhost.stranger.example", "", "127.0.0.1.example"] {
            assert!(!meant(host, "127.0.0.1") && !meant(host, "::ffff:127.0.0.1"), "{host}");
        }
        assert!(is_meant(&HeaderMap::new(), ([127, 0, 0, 1], 1).into(), ""), "HTTP/1.0 has no name");
    }

    #[test]
    fn from_elsewhere_it_may_have_any_name() {
        assert!(meant("metrics.example:7686", "10.0.0.5"));
    }
}
