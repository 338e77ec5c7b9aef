//! Addresses of what a service keeps: `https://…/conversations?a=1` becomes `https://…/conversations/conv_1?a=1`.

/// The longest id, in bytes.
const LONGEST_ID: usize = 256;

/// Returns the address of a resource of which the id is the last segment of the path, with these members of the query
/// beside those of the request's address. `None` for an id that could name another address: credentials are sent there.
pub(crate) fn resource_address(request_url: &str, id: &str, members: Vec<String>) -> Option<String> {
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || id.len() > LONGEST_ID || !id.bytes().all(is_of_id) {
        return None;
    }
    let without_fragment = request_url.split_once('#').map_or(request_url, |(url, _)| url);
    let (path, query) = without_fragment.split_once('?').unwrap_or((without_fragment, ""));
    let own = query.split('&').filter(|member| !member.is_empty()).map(str::to_owned);
    let query: Vec<String> = own.chain(members).collect();
    let separator = if query.is_empty() { "" } else { "?" };
    Some(format!("{}/{id}{separator}{}", path.trim_end_matches('/'), query.join("&")))
}
