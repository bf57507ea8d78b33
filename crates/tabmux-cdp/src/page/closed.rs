//! Closed shadow roots: the browser's own tools see into them, so they are found there once and handed to the page script,
//! which then walks them like open ones.

use futures::future::join_all;

use super::CdpPage;
use super::world::Failure;
use crate::protocol::dom::{DescribeNode, Node, ResolveNode};
use crate::protocol::runtime::{CallArgument, CallFunctionOn, Evaluate, ReleaseObject};

/// More than any page has that people use.
const MAX_ROOTS: usize = 1000;

impl CdpPage {
    /// Hands the page script of a frame every closed shadow root there.
    pub(super) async fn open_closed_roots(&self, frame: &str) -> Result<(), Failure> {
        let world = self.world_of(frame).await?;
        let session = world.session.as_str();
        let whole = Evaluate { expression: "document".into(), context_id: Some(world.context), ..Evaluate::default() };
        let whole = self.call_in(session, &whole).await?.result.object_id;
        let described = DescribeNode { object_id: whole.clone(), depth: Some(-1), pierce: Some(true), ..DescribeNode::default() };
        let described = self.call_in(session, &described).await;
        if let Some(object_id) = whole {
            drop(self.connection.send(Some(session), &ReleaseObject { object_id }));
        }
        let mut roots = Vec::new();
        closed(&described?.node, &mut roots);
        if roots.is_empty() {
            return Ok(());
        }
        let resolve =
            |id: &i64| ResolveNode { backend_node_id: Some(*id), execution_context_id: Some(world.context), ..ResolveNode::default() };
        let resolved = join_all(roots.iter().map(|id| self.connection.send(Some(session), &resolve(id)))).await;
        // One that went meanwhile is not missed.
        let objects: Vec<_> = resolved.into_iter().flatten().filter_map(|reply| reply.object.object_id).collect();
        let hand_over = CallFunctionOn {
            function_declaration: "function (...roots) { tabmux.open(roots); }".into(),
            arguments: Some(objects.iter().map(|id| CallArgument { object_id: Some(id.clone()), ..CallArgument::default() }).collect()),
            execution_context_id: Some(world.context),
            ..CallFunctionOn::default()
        };
        let handed = self.call_in(session, &hand_over).await;
        for object_id in objects {
            drop(self.connection.send(Some(session), &ReleaseObject { object_id }));
        }
        handed.map(drop).map_err(Failure::from)
    }
}

fn closed(node: &Node, roots: &mut Vec<i64>) {
    if node.shadow_root_type.as_deref() == Some("closed") && roots.len() < MAX_ROOTS {
        roots.push(node.backend_node_id);
    }
    let below = node.children.iter().flatten().chain(node.shadow_roots.iter().flatten()).chain(node.content_document.as_deref());
    below.for_each(|node| closed(node, roots));
}
