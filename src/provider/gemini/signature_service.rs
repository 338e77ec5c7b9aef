//! The services of Google that have their own signatures of thoughts.

/// Returns the service at a host. A signature is "corrupted or invalid" after a change of the route: Vertex and the
/// Gemini API do not read each other's (2026-11-25).
pub(in crate::provider) fn signature_service(host: &str) -> Option<&'static str> {
    match host {
        "generativelanguage.googleapis.com" => Some("gemini"),
        _ if host.ends_with("aiplatform.googleapis.com") => Some("vertex"),
        _ => None,
    }
}
