//! Who made an answer, and hosts that serve the same models (R76).

use crate::encoding::encode_fields;
use crate::error::{Error, Result};

/// Who made an answer: the server and the model that were asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerMaker {
    /// The host of the request's URL, in lower case, with its port if that is not the scheme's own: `api.example.com`,
    /// `localhost:4000`. `None` if the URL is relative.
    pub host: Option<String>,
    /// The model that the request named; `None` if it named none.
    pub model: Option<String>,
}
encode_fields!(struct AnswerMaker {
    0 => host,
    1 => model,
});

/// Hosts of which an application says that they serve the same models: what one made, the others can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostGroup(Vec<String>);

impl HostGroup {
    /// Checks the names: `gateway.example.com` (with every port), `localhost:4000`, `[::1]:4000`.
    ///
    /// # Errors
    /// `config_invalid` for an empty group, and for a text that is no host.
    pub fn new(hosts: Vec<String>) -> Result<Self> {
        if hosts.is_empty() {
            return Err(Error::config("a group of hosts that serve the same models is empty; name its hosts"));
        }
        if hosts.iter().all(|host| is_host(host)) {
            return Ok(Self(hosts.iter().map(|host| host.to_ascii_lowercase()).collect()));
        }
        Err(Error::config(
            "a name is no host; pass what the URL has between \"//\" and the path: \"gateway.example.com\" or \"localhost:4000\"",
        ))
    }

    /// Returns true if the group has the host of an [`AnswerMaker`].
    #[must_use]
    pub fn contains(&self, host: &str) -> bool {
        self.0.iter().any(|member| member == host || member == host_name(host))
    }

    /// Iterates over the names of its hosts, without ports.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|host| host_name(host))
    }
}

/// Returns a host without its port.
#[must_use]
pub fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are in brackets.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

fn is_host(text: &str) -> bool {
    let name = host_name(text);
    let port = text.get(name.len()..).unwrap_or_default();
    let is_port = port.is_empty() || port.get(1..).is_some_and(|digits| digits.parse::<u16>().is_ok());
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let is_name = |name: &str| !name.contains([':', '/', '?', '#', '@', '[', ']', '\\', '*']);
    let is_named = match address {
        Some(address) => {
            address.contains(':') && address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.%".contains(&byte))
        }
        None => !name.is_empty() && is_name(name),
    };
    is_port && is_named && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r76_a_group_takes_hosts_and_nothing_else() {
        let group = |host: &str| HostGroup::new(vec![host.into()]);
        for host in ["gw.example.com", "localhost:4000", "127.0.0.1:80", "[::1]:4000", "[::1]", "GW.Example.com", "llm"]
        {
            assert!(group(host).is_ok(), "{host}");
        }
        for text in [
            "",
            "https://gw.example.com",
            "gw.example.com/v1",
            "gw:port",
            "gw:",
            "a b",
            "*.example.com",
            "u@gw",
            ":80",
            "::1",
            "a:99999",
            "[abc]",
            "[::z]",
            "a\u{7}b",
        ] {
            assert_eq!(group(text).unwrap_err().code, crate::error::ErrorCode::ConfigInvalid, "{text}");
        }
        assert!(HostGroup::new(Vec::new()).is_err());
    }

    #[test]
    fn r76_a_host_without_a_port_stands_for_all_of_them() {
        let group = HostGroup::new(vec!["LocalHost".into(), "[::1]:4000".into()]).unwrap();
        for (host, is_in) in [
            ("localhost", true),
            ("localhost:3000", true),
            ("[::1]:4000", true),
            ("[::1]", false),
            ("[::1]:3000", false),
        ] {
            assert_eq!(group.contains(host), is_in, "{host}");
        }
    }
}
