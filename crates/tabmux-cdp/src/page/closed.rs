//! Closed shadow roots: the page script names elements that may have one, the browser says which do, and those are handed to
//! the script, which then walks them like open ones. Two round trips; handing them over is not waited for, since what is asked
//! next comes after it.

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use super::CdpPage;
use super::frames::World;
use super::world::Failure;
use crate::protocol::dom::ResolveNode;
use crate::protocol::runtime::{CallArgument, CallFunctionOn, ReleaseObject, SerializationOptions};

/// How deep closed shadow roots are looked for in closed shadow roots.
pub(super) const CLOSED_ROUNDS: usize = 4;

/// A node as Chromium writes it in full (`V8InspectorImpl`'s deep serialisation, made for WebDriver BiDi).
#[derive(Deserialize)]
struct Node {
    value: Inside,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inside {
    backend_node_id: i64,
    mode: Option<String>,
    shadow_root: Option<Box<Node>>,
}

impl CdpPage {
    /// Hands the page script of a frame the closed shadow roots of the elements it suspects, and says how many there are.
    pub(super) async fn open_closed_roots(&self, frame: &str) -> Result<usize, Failure> {
        let world = self.world_of(frame).await?;
        self.open_roots(&world).await
    }

    pub(super) async fn open_roots(&self, world: &World) -> Result<usize, Failure> {
        let session = world.session.as_str();
        let suspects = CallFunctionOn {
            function_declaration: "function () { return tabmux.suspects(); }".into(),
            execution_context_id: Some(world.context),
            serialization_options: Some(SerializationOptions {
                serialization: "deep".into(),
                additional_parameters: Some(json!({ "includeShadowTree": "all", "maxNodeDepth": 0 })),
                ..SerializationOptions::default()
            }),
            ..CallFunctionOn::default()
        };
        let reply = self.call_in(session, &suspects).await?.result;
        self.release(session, reply.object_id);
        let roots = closed(reply.deep_serialized_value.and_then(|whole| whole.value));
        let resolve =
            |id: &i64| ResolveNode { backend_node_id: Some(*id), execution_context_id: Some(world.context), ..ResolveNode::default() };
        let resolved = join_all(roots.iter().map(|id| self.connection.send(Some(session), &resolve(id)))).await;
        // One that went meanwhile is not missed.
        let objects: Vec<_> = resolved.into_iter().flatten().filter_map(|reply| reply.object.object_id).collect();
        if objects.is_empty() {
            return Ok(0);
        }
        let hand_over = CallFunctionOn {
            function_declaration: "function (...roots) { tabmux.open(roots); }".into(),
            arguments: Some(objects.iter().map(|id| CallArgument { object_id: Some(id.clone()), ..CallArgument::default() }).collect()),
            execution_context_id: Some(world.context),
            ..CallFunctionOn::default()
        };
        drop(self.connection.send(Some(session), &hand_over));
        let opened = objects.len();
        objects.into_iter().for_each(|object| self.release(session, Some(object)));
        Ok(opened)
    }

    fn release(&self, session: &str, object: Option<String>) {
        if let Some(object_id) = object {
            drop(self.connection.send(Some(session), &ReleaseObject { object_id }));
        }
    }
}

/// The closed roots of these elements.
fn closed(elements: Option<Value>) -> Vec<i64> {
    let elements: Vec<Node> = elements.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
    let root = |node: Node| node.value.shadow_root.filter(|root| root.value.mode.as_deref() == Some("closed"));
    elements.into_iter().filter_map(root).map(|root| root.value.backend_node_id).collect()
}
