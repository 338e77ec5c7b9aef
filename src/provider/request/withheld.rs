//! Finds the members of `params` that contain credentials. They are sent but never stored, so the caller passes them
//! again to resume a run.

use super::credentials::{bare_name, url_contains_secret};
use super::member_path::MemberPath;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, ObjectWriter};
use crate::provider::spec::DialectSpec;

/// Members that contain credentials at any depth and in every dialect, in the form of [`bare_name`]. Gateways and SDKs
/// read them.
const SECRET_MEMBERS: [&str; 29] = [
    "apikey",
    "xapikey",
    "apikeystring",
    "apitoken",
    "authorization",
    "authorizationtoken",
    "proxyauthorization",
    "authtoken",
    "accesstoken",
    "bearertoken",
    "refreshtoken",
    "sessiontoken",
    "clientsecret",
    "secretkey",
    "privatekey",
    "password",
    "cookie",
    "cookies",
    "credentials",
    "vertexcredentials",
    "azureadtoken",
    "awsaccesskeyid",
    "awssecretaccesskey",
    "awssessiontoken",
    "domainsecrets",
    "headers",
    "extraheaders",
    "defaultheaders",
    "extraquery",
];

/// Members that contain a JSON Schema, in the form of [`bare_name`]. Names inside of them are those of a tool's
/// arguments.
const SCHEMA_MEMBERS: [&str; 11] = [
    "parameters",
    "parametersjsonschema",
    "inputschema",
    "outputschema",
    "responseschema",
    "responsejsonschema",
    "response",
    "jsonschema",
    "schema",
    "properties",
    "defs",
];

/// Members below this depth are withheld without being searched.
const MAX_DEPTH: usize = 48;

/// `params` without the members that contain credentials.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Withheld {
    /// The members that may be stored.
    pub params: Json,
    /// Paths of the withheld members, such as `tools[0].authorization`.
    pub members: Vec<String>,
    /// All strings in the withheld members.
    pub values: Vec<String>,
}

/// Removes the members that contain credentials from `params`.
pub(crate) fn withhold(spec: &DialectSpec, params: &Json) -> Withheld {
    let mut search = CredentialSearch { paths: spec.body.credential_members, members: Vec::new(), values: Vec::new() };
    let mut out = String::new();
    search.copy(
        params.view(),
        &mut out,
        &Location { path: String::new(), remaining_paths: search.paths.to_vec(), depth: 0 },
    );
    let params = if search.members.is_empty() { params.clone() } else { Json::trusted(out) };
    Withheld { params, members: search.members, values: search.values }
}

/// Returns the first path in `members` that `params` do not contain. Indexes of lists are ignored: the caller may
/// reorder its tools.
pub(crate) fn first_missing<'m>(spec: &DialectSpec, members: &'m [String], params: &Json) -> Option<&'m String> {
    let mut present: Vec<String> = withhold(spec, params).members.iter().map(|path| without_indexes(path)).collect();
    members.iter().find(|member| {
        let wanted = without_indexes(member);
        match present.iter().position(|path| *path == wanted) {
            Some(at) => {
                present.swap_remove(at);
                false
            }
            None => true,
        }
    })
}

/// Removes the indexes from a path: `tools[].authorization` for `tools[3].authorization`.
fn without_indexes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut in_index = false;
    for c in path.chars() {
        in_index &= c != ']';
        if !in_index {
            out.push(c);
        }
        in_index |= c == '[';
    }
    out
}

/// The location of a value in `params`.
struct Location {
    path: String,
    /// The remaining steps of the dialect's paths that lead through this value.
    remaining_paths: Vec<MemberPath>,
    depth: usize,
}

impl Location {
    /// Returns the location of a member, or of an item whose index is `step`.
    fn below(&self, step: &str, is_item: bool) -> Self {
        let bare = bare_name(step);
        let leads_here = |path: &&MemberPath| {
            path.first().is_some_and(|first| *first == "*" || (!is_item && bare_name(first) == bare))
        };
        let remaining_paths =
            self.remaining_paths.iter().filter(leads_here).map(|path| path.get(1..).unwrap_or_default()).collect();
        let path = match (is_item, self.path.is_empty()) {
            (true, _) => format!("{}[{step}]", self.path),
            (false, true) => step.to_owned(),
            (false, false) => format!("{}.{step}", self.path),
        };
        Self { path, remaining_paths, depth: self.depth + 1 }
    }

    /// Returns true if one of the dialect's paths ends at this value.
    fn is_credential_path(&self) -> bool {
        self.remaining_paths.iter().any(|rest| rest.is_empty())
    }
}

/// Copies `params` without credentials, and records what it leaves out.
struct CredentialSearch {
    paths: &'static [MemberPath],
    members: Vec<String>,
    values: Vec<String>,
}

impl CredentialSearch {
    fn copy(&mut self, value: JsonRef<'_>, out: &mut String, location: &Location) {
        match value.kind() {
            JsonKind::Object => {
                let mut object = ObjectWriter::new(out);
                for (key, value) in value.entries() {
                    let name = key.as_text().unwrap_or_default();
                    let below = location.below(&name, false);
                    if is_secret(&name, value, &below) {
                        self.withhold(value, below.path);
                    } else if SCHEMA_MEMBERS.contains(&bare_name(&name).as_str()) && below.remaining_paths.is_empty() {
                        object.copy(key, value);
                    } else {
                        self.copy(value, object.key_token(key.as_raw()), &below);
                    }
                }
                object.end();
            }
            JsonKind::Array => {
                let mut array = ArrayWriter::new(out);
                for (at, item) in value.items().enumerate() {
                    self.copy(item, array.item(), &location.below(&at.to_string(), true));
                }
                array.end();
            }
            _ => out.push_str(value.as_raw()),
        }
    }

    fn withhold(&mut self, value: JsonRef<'_>, path: String) {
        self.members.push(path);
        collect_texts(value, &mut self.values, 0);
    }
}

/// Returns true if a member contains a credential: its path or its name says so, or it is a URL that contains one.
fn is_secret(name: &str, value: JsonRef<'_>, location: &Location) -> bool {
    if is_vacant(value) {
        return false;
    }
    let bare = bare_name(name);
    let is_url = bare.ends_with("url") || bare.ends_with("uri");
    location.depth > MAX_DEPTH
        || location.is_credential_path()
        || SECRET_MEMBERS.contains(&bare.as_str())
        || (is_url && value.as_text().is_some_and(|url| url_contains_secret(&url)))
}

/// Returns true if a value is null, a boolean or empty, and so contains no credential.
fn is_vacant(value: JsonRef<'_>) -> bool {
    match value.kind() {
        JsonKind::Null | JsonKind::Bool => true,
        JsonKind::Number => false,
        JsonKind::String => value.is_text(""),
        JsonKind::Array => value.items().next().is_none(),
        JsonKind::Object => value.entries().next().is_none(),
    }
}

fn collect_texts(value: JsonRef<'_>, out: &mut Vec<String>, depth: usize) {
    if let Some(text) = value.as_text() {
        out.push(text.into_owned());
    }
    if depth < MAX_DEPTH {
        value.items().for_each(|item| collect_texts(item, out, depth + 1));
        value.entries().for_each(|(_, member)| collect_texts(member, out, depth + 1));
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::message::Dialect;
    use crate::provider::{first_missing, withhold};

    const KEY: &str = "hunter2hunter2";

    /// Replaces `@@` by the key, checks that withholding removes it and is idempotent, and returns the paths.
    fn members(dialect: Dialect, params: &str) -> Vec<String> {
        let params = Json::parse(&params.replace("@@", KEY)).unwrap();
        let withheld = withhold(dialect, &params);
        assert!(!withheld.params.as_str().contains(KEY), "{}", withheld.params.as_str());
        assert!(withheld.members.is_empty() || withheld.values.iter().any(|value| value.contains(KEY)));
        let again = withhold(dialect, &withheld.params);
        assert_eq!((again.params, again.members), (withheld.params, Vec::new()));
        withheld.members
    }

    #[test]
    fn r68_members_that_hold_credentials_are_withheld_in_every_dialect() {
        for dialect in Dialect::ALL {
            for (params, path) in [
                (r#"{"model":"m","api_key":"@@"}"#, "api_key"),
                (r#"{"apiKey":"@@"}"#, "apiKey"),
                (r#"{"headers":{"x":"@@"}}"#, "headers"),
                (r#"{"extra_headers":{"Authorization":"Bearer @@"}}"#, "extra_headers"),
                (r#"{"extra_query":{"key":"@@"}}"#, "extra_query"),
                (r#"{"extra_body":{"aws_secret_access_key":"@@"}}"#, "extra_body.aws_secret_access_key"),
                (r#"{"tools":[{"type":"x"},{"type":"mcp","authorization":"@@"}]}"#, "tools[1].authorization"),
                (r#"{"tools":[{"type":"mcp","headers":{"a":"@@"}}]}"#, "tools[0].headers"),
                (r#"{"tools":[{"type":"mcp","server_url":"https://u:@@@h/"}]}"#, "tools[0].server_url"),
                (r#"{"mcp_servers":[{"url":"https://h/?api_key=@@"}]}"#, "mcp_servers[0].url"),
                (r#"{"tools":{"type":"mcp","authorization":"@@"}}"#, "tools.authorization"),
                (r#"{"\u0061pi_key":"@@"}"#, "api_key"),
            ] {
                assert_eq!(members(dialect, params), [path], "{dialect:?} {params}");
            }
        }
    }

    #[test]
    fn r68_members_of_one_dialect_are_withheld() {
        for (dialect, params, path) in [
            (
                Dialect::Anthropic,
                r#"{"mcp_servers":[{"type":"url","url":"https://h/","name":"n","authorization_token":"@@"}]}"#,
                "mcp_servers[0].authorization_token",
            ),
            (
                Dialect::OpenAiResponses,
                r#"{"tools":[{"type":"shell","environment":{"network_policy":{"domain_secrets":[{"value":"@@"}]}}}]}"#,
                "tools[0].environment.network_policy.domain_secrets",
            ),
            (
                Dialect::OpenAiChat,
                r#"{"data_sources":[{"parameters":{"endpoint":"https://h","authentication":{"key":"@@"}}}]}"#,
                "data_sources[0].parameters.authentication",
            ),
            (
                Dialect::Gemini,
                r#"{"tools":[{"mcpServers":[{"streamableHttpTransport":{"url":"https://h","headers":{"k":"@@"}}}]}]}"#,
                "tools[0].mcpServers[0].streamableHttpTransport.headers",
            ),
            (
                Dialect::Gemini,
                r#"{"tools":[{"google_maps":{"auth_config":{"any":"@@"}}}]}"#,
                "tools[0].google_maps.auth_config",
            ),
            (
                Dialect::Mistral,
                r#"{"tools":[{"type":"connector","authorization":{"type":"api-key","value":"@@"}}]}"#,
                "tools[0].authorization",
            ),
            (
                Dialect::GeminiInteractions,
                r#"{"environment":{"network":{"allowlist":[{"domain":"h","transform":{"PRIVATE-TOKEN":"@@"}}]}}}"#,
                "environment.network.allowlist[0].transform",
            ),
            (
                Dialect::GeminiInteractions,
                r#"{"environment":{"type":"remote","env":{"GITHUB_TOKEN":{"value":"@@"}}}}"#,
                "environment.env.GITHUB_TOKEN",
            ),
            (Dialect::GeminiInteractions, r#"{"environment":{"env":{"PLAIN":"@@"}}}"#, "environment.env.PLAIN"),
        ] {
            assert_eq!(members(dialect, params), [path], "{dialect:?}");
        }
    }

    #[test]
    fn r68_schemas_of_arguments_and_empty_members_are_kept_byte_for_byte() {
        for text in [
            r#"{"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"headers":{"type":"object"},"api_key":{"type":"string"}}}}}]}"#,
            r#"{"tools":[{"name":"f","input_schema":{"properties":{"authorization":{"type":"string"}}}}]}"#,
            r#"{"response_format":{"json_schema":{"schema":{"properties":{"password":{"type":"string"}}}}}}"#,
            r#"{"api_key":null,"headers":{},"authorization":"","cookies":[] ,"max_tokens":1e3, "a":1,"a":2}"#,
            r#"{"tools":[{"type":"mcp","server_url":"https://h/mcp"}]}"#,
        ] {
            let params = Json::parse(text).unwrap();
            for dialect in Dialect::ALL {
                let withheld = withhold(dialect, &params);
                assert_eq!((withheld.params.as_str(), withheld.members.len()), (text, 0), "{dialect:?}");
            }
        }
    }

    #[test]
    fn r68_a_withheld_member_is_missing_until_it_is_passed_again() {
        let dialect = Dialect::OpenAiResponses;
        let given = r#"{"api_key":"@","tools":[{"authorization":"@"},{"authorization":"@"}]}"#;
        let withheld = withhold(dialect, &Json::parse(given).unwrap()).members;
        let missing = |params: &str| first_missing(dialect, &withheld, &Json::parse(params).unwrap()).cloned();
        assert_eq!(missing(given), None);
        assert_eq!(missing(r#"{"tools":[{},{"authorization":"a"},{"authorization":"b"}],"api_key":"c"}"#), None);
        assert_eq!(missing("{}").as_deref(), Some("api_key"));
        assert_eq!(missing(r#"{"api_key":"c"}"#).as_deref(), Some("tools[0].authorization"));
        assert_eq!(
            missing(r#"{"api_key":"c","tools":[{"authorization":"a"},{"authorization":""}]}"#).as_deref(),
            Some("tools[1].authorization")
        );
    }

    #[test]
    fn a_member_below_the_depth_limit_is_withheld_without_a_search() {
        let text = format!("{}\"{KEY}\"{}", r#"{"a":"#.repeat(3000), "}".repeat(3000));
        let withheld = withhold(Dialect::OpenAiChat, &Json::parse(&text).unwrap());
        assert!(!withheld.params.as_str().contains(KEY) && withheld.members.len() == 1);
    }
}
