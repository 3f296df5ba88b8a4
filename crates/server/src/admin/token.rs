//! The token of the admin endpoint: who may see pages with data.

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;

const SCHEME: &[u8] = b"Bearer ";

/// Returns whether a request with these headers may, where this token is expected; an empty one lets everybody.
pub(super) fn admits(expected: &str, headers: &HeaderMap) -> bool {
    expected.is_empty() || given(headers).is_some_and(|token| bool::from(expected.as_bytes().ct_eq(token)))
}

/// The token of a request.
pub(super) fn given(headers: &HeaderMap) -> Option<&[u8]> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn admitted(header: &[u8]) -> bool {
        let value = HeaderValue::from_bytes(header).expect("a value of a header");
        admits("secret", &HeaderMap::from_iter([(AUTHORIZATION, value)]))
    }

    #[test]
    fn only_the_whole_token_behind_its_scheme_opens() {
        for header in [&b"Bearer secret"[..], b"bearer secret", b"BEARER  secret"] {
            assert!(admitted(header), "{}", header.escape_ascii());
        }
        for header in [
            &b""[..],
            b"secret",
            b"Bearer",
            b"Bearer ",
            b"Bearer secre",
            b"Bearer secrets",
            b"Basic secret",
            b"Bearer Secret",
            b"Bearersecret ",
            b"Bearer \xff\xfe",
        ] {
            assert!(!admitted(header), "{}", header.escape_ascii());
        }
        assert!(!admits("secret", &HeaderMap::new()));
        assert!(admits("", &HeaderMap::new()), "no token is expected");
    }
}
