//! A request that waits for our word (`Fetch.requestPaused`), as far as anybody here asks. The generated event is not used: of a request that is too
//! long to be told of there is only the id, and one that is not understood would wait for ever.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lenient;

pub(crate) struct Paused {
    pub(crate) request_id: String,
    pub(crate) frame_id: String,
    pub(crate) resource_type: String,
    pub(crate) url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    request_id: String,
    #[serde(default)]
    frame_id: String,
    #[serde(default)]
    resource_type: String,
    #[serde(default)]
    request: Address,
}

#[derive(Default, Deserialize)]
struct Address {
    #[serde(default)]
    url: String,
}

impl Paused {
    /// Nothing, where there is nothing to let go.
    pub(crate) fn read(params: &RawValue) -> Option<Self> {
        let Told { request_id, frame_id, resource_type, request } = lenient::read(params.get().as_bytes()).ok()?;
        Some(Self { request_id, frame_id, resource_type, url: request.url })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Option<[String; 4]> {
        let Paused { request_id, frame_id, resource_type, url } = Paused::read(&RawValue::from_string(json.to_owned()).ok()?)?;
        Some([request_id, frame_id, resource_type, url])
    }

    #[test]
    fn a_request_is_read_however_little_is_told_of_it() {
        let told = |json: &str| read(json).unwrap();
        let whole =
            r#"{"requestId":"1","request":{"url":"http://a.test/","method":"GET"},"frameId":"F","resourceType":"Document","more":{}}"#;
        assert_eq!(told(whole), ["1", "F", "Document", "http://a.test/"]);
        assert_eq!(told(r#"{"requestId":"1"}"#), ["1", "", "", ""]);
        assert_eq!(told(r#"{"requestId":"1","request":{},"resourceType":"Image"}"#), ["1", "", "Image", ""]);
        assert_eq!(told(r#"{"requestId":"1","request":{"url":"http://a.test/\ud83d"}}"#)[3], "http://a.test/\u{fffd}");
        assert!(read("{}").is_none(), "there is nothing to let go");
    }
}
