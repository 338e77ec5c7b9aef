//! Rejects credentials in the URL and the headers of a request, which are stored with a run.

use crate::error::{Error, Result};
use std::borrow::Cow;

/// Headers that are known to contain no credential, in lower case. `js/credentials.js` has the same list.
const PLAIN_HEADERS: [&str; 34] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "baggage",
    "cache-control",
    "content-language",
    "content-type",
    "http-referer",
    "idempotency-key",
    "openai-beta",
    "openai-organization",
    "openai-project",
    "origin",
    "pragma",
    "prefer",
    "priority",
    "referer",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-client-request-id",
    "x-correlation-id",
    "x-goog-api-client",
    "x-goog-request-params",
    "x-goog-user-project",
    "x-grok-conv-id",
    "x-openrouter-categories",
    "x-openrouter-title",
    "x-request-id",
    "x-session-affinity",
    "x-title",
];

/// Prefix of the telemetry headers of the providers' SDKs, such as `x-stainless-lang`.
const PLAIN_PREFIX: &str = "x-stainless-";

/// Suffixes of names of credentials, in the form of [`bare_name`].
const SECRET_SUFFIXES: [&str; 22] = [
    "apikey",
    "accesskey",
    "accesskeyid",
    "appkey",
    "subscriptionkey",
    "secretkey",
    "privatekey",
    "token",
    "auth",
    "authorization",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "cookie",
    "signature",
    "jwt",
    "bearer",
    "sessionid",
];

/// Names of credentials that are harmless as suffixes: `key` is a credential, `monkey` is not.
const SECRET_NAMES: [&str; 4] = ["key", "sig", "pass", "sid"];

/// Prefixes of the API keys of known providers.
pub(crate) const KEY_PREFIXES: [&str; 6] = ["sk-", "sk_", "gsk_", "xai-", "AIza", "pk-"];

/// Returns true if a header is known to contain no credential.
#[must_use]
pub fn is_plain_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PLAIN_HEADERS.contains(&name.as_str()) || name.starts_with(PLAIN_PREFIX)
}

/// Returns the name's ASCII letters and digits in lower case: `xapikey` for `X-API_Key`.
pub(super) fn bare_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns true if a header or a query parameter of that name contains a credential.
fn names_secret(name: &str) -> bool {
    let name = bare_name(name);
    let without_x = name.strip_prefix('x').unwrap_or(&name);
    SECRET_NAMES.contains(&without_x)
        || SECRET_NAMES.contains(&name.as_str())
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Returns true if a query parameter of that name contains a credential. In a query, any name that ends in `key` does.
fn names_secret_parameter(name: &str) -> bool {
    names_secret(name) || bare_name(name).ends_with("key")
}

/// Returns true if a value has the form of a credential, such as `Bearer …` or `sk-…`.
fn is_secret_value(value: &str) -> bool {
    let value = value.trim_start();
    let scheme = value.split_once(' ').map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("bearer")
        || scheme.eq_ignore_ascii_case("basic")
        || KEY_PREFIXES.iter().any(|prefix| value.starts_with(prefix) && value.len() > prefix.len() + 8)
}

/// Decodes percent escapes such as `%41`.
fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%')
            .then(|| std::str::from_utf8(tail.get(..2)?).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { tail.get(2..).unwrap_or(&[]) } else { tail };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the authority of a URL (`user@host:port`), empty if it has none. Like the URL parsers of browsers, this
/// reads `\` as `/` and does not require slashes after a scheme.
fn authority(url: &str) -> &str {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let slashes = ['/', '\\'];
    let rest = match url.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => rest,
        _ if url.starts_with(slashes) && url.get(1..).is_some_and(|rest| rest.starts_with(slashes)) => url,
        _ => return "",
    };
    rest.trim_start_matches(slashes).split(slashes).next().unwrap_or_default()
}

/// Returns true if a URL contains a credential: user information, a key in its query, or a value in the form of a key
/// in its path.
pub(super) fn url_contains_secret(url: &str) -> bool {
    let without_fragment = url.split('#').next().unwrap_or_default();
    let (base, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
    let in_query = query.split(['&', ';']).any(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        names_secret_parameter(&percent_decoded(name)) || is_secret_value(&percent_decoded(value))
    });
    let in_path = base.split(['/', '\\']).any(|part| is_secret_value(&percent_decoded(part)));
    in_query || in_path || authority(base).contains('@')
}

/// Checks the URL of a request.
///
/// # Errors
/// `config_invalid`. The message does not quote the URL.
pub(super) fn check_url(url: &str) -> Result<()> {
    if url.is_empty() {
        return Err(Error::config("`provider.url` is empty; give the address that takes the request"));
    }
    if url.contains(|c: char| c.is_control()) {
        return Err(Error::config("`provider.url` holds a line break or another control character; leave it out"));
    }
    if url_contains_secret(url) {
        return Err(Error::config(
            "the address holds a credential; it would be stored with the run. Give it to the host instead (`headers` of `drive`)",
        ));
    }
    if url.contains('#') {
        return Err(Error::config("`provider.url` has a fragment (`#…`), which is never sent; leave it out"));
    }
    Ok(())
}

/// Rejects headers whose name or value has the form of a credential.
///
/// # Errors
/// `config_invalid`. The message names the header and does not quote its value.
pub(super) fn check_headers(headers: &[(String, String)]) -> Result<()> {
    let holds_secret =
        |(name, value): &&(String, String)| (!is_plain_header(name) && names_secret(name)) || is_secret_value(value);
    match headers.iter().find(holds_secret) {
        Some((name, _)) => Err(Error::config(format!(
            "the header `{name}` holds a credential; give it to the host instead (`headers` of `drive`)"
        ))),
        None => Ok(()),
    }
}

/// Checks that each header is known to contain no credential, or is one of those that the application `allowed`.
///
/// # Errors
/// `config_invalid`. The message names the header and does not quote its value.
pub fn check_known_headers(headers: &[(String, String)], allowed: &[String]) -> Result<()> {
    let is_known =
        |name: &str| is_plain_header(name) || allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
    match headers.iter().find(|(name, _)| !is_known(name)) {
        Some((name, _)) => Err(Error::config(format!(
            "`provider.headers` is stored with the run, and `{name}` is not known to hold no credential; give it to the host (`headers` of \
             `drive`), or name it in `provider.allowHeaders` if it is no secret"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::error::ErrorCode;

    const KEY: &str = "hunter2hunter2";

    fn assert_rejected(result: Result<()>, what: &str) {
        let error = result.expect_err(what);
        assert_eq!(error.code, ErrorCode::ConfigInvalid, "{what}");
        assert!(!error.to_string().contains(KEY), "{error}");
    }

    #[test]
    fn r68_a_url_with_a_credential_or_a_fragment_is_rejected_and_not_quoted() {
        for url in [
            "https://user:@@@h/v1",
            "https://@@@h/v1",
            "https:@@@h",
            "https:/u:@@@h/v1",
            r"https:\\u:@@@h\v1",
            "//u:@@@h/v1",
            "u:@@@h/v1",
            "https://h/v1#@@",
            "https://h/v1?x=1#key=@@",
            "https://h/v1\n?x=@@",
            "https://h/?key=@@",
            "https://h/?apiKey=@@",
            "https://h/?x-api_key=@@",
            "https://h/?mykey=@@",
            "https://h/?%6Bey=@@",
            "https://h/?a=b;token=@@",
            "https://h/?X-Amz-Signature=@@",
            "https://h/?X-Amz-Credential=@@",
            "https://h/?pwd=@@",
            "https://h/?x=sk-@@",
            "https://h/?x=Bearer%20@@",
            "https://h/sk-@@/v1",
        ] {
            assert_rejected(check_url(&url.replace("@@", KEY)), url);
        }
        for url in [
            "https://h/v1?api-version=2024-10-21&deployment=gpt-4",
            "https://h/v1/models/claude@20250101:streamRawPredict?alt=sse",
            "https://h:8080/v1?max_tokens=9&tokenizer=x",
            "/@me/chat",
            "/api/chat",
            "about:render",
            "http://[::1]:1234/v1",
            "https://h/sk-learn",
        ] {
            check_url(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        }
    }

    #[test]
    fn r68_a_header_that_is_neither_known_nor_allowed_is_rejected() {
        let headers = |name: &str| vec![(name.to_owned(), KEY.to_owned())];
        for name in PLAIN_HEADERS {
            check_known_headers(&headers(name), &[]).unwrap();
            check_headers(&headers(name)).unwrap();
        }
        let allowed = ["X-Team".to_owned()];
        for name in ["authorization", "x-api-key", "x-team", "x-mine", "portkey-config", "cookie"] {
            assert_rejected(check_known_headers(&headers(name), &[]), name);
        }
        check_known_headers(&headers("x-team"), &allowed).unwrap();
        check_headers(&headers("x-team")).unwrap();
        // A name of a credential is rejected even if the application allows it.
        for name in ["authorization", "X-Api-Key", "cf-aig-authorization", "x-auth-token", "set-cookie"] {
            assert_rejected(check_headers(&headers(name)), name);
        }
        assert_rejected(check_headers(&[("x-team".into(), format!("bearer {KEY}"))]), "a scheme");
        assert_rejected(check_headers(&[("user-agent".into(), format!("sk-{KEY}"))]), "a form");
    }
}
