//! Closed shadow roots: the page script names elements that may have one, the browser says which do, and those are handed to
//! the script, which then walks them like open ones. A look names them along with what it sees; what they are called in the
//! script's world is foretold, so they are handed over and looked into in one round trip more.

use futures::future::join_all;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::CdpPage;
use super::frames::World;
use super::script::{Numbers, function, read};
use super::world::{Failure, call};
use crate::lenient;
use crate::protocol::dom::ResolveNode;
use crate::protocol::runtime::{CallArgument, CallFunctionOn, CallFunctionOnReply, ReleaseObject, SerializationOptions};

/// How deep closed shadow roots are looked for in closed shadow roots.
pub(super) const CLOSED_ROUNDS: usize = 4;

const HAND_OVER: &str = "function (...answer) { tabmux.open(...answer); }";

/// What the browser says of elements that may have closed shadow roots.
#[derive(Debug)]
pub(super) struct Suspects {
    world: World,
    /// That of the question.
    number: i64,
    /// The closed ones, by Chromium's numbers.
    roots: Vec<i64>,
    /// What the next objects of this world will be called.
    names: Vec<String>,
}

/// Whether roots were handed over before what was asked right after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    InTime,
    Late,
}

/// A value as Chromium writes it in full (`V8InspectorImpl`'s deep serialisation, made for WebDriver BiDi).
#[derive(Deserialize)]
#[serde(untagged)]
enum Deep {
    Node { value: Inside },
    Plain { value: Value },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inside {
    backend_node_id: i64,
    mode: Option<String>,
    shadow_root: Option<Box<Root>>,
}

#[derive(Deserialize)]
struct Root {
    value: Inside,
}

impl Suspects {
    pub(super) fn found_none(&self) -> bool {
        self.roots.is_empty()
    }

    /// Of an array that begins with a number, if it has anything.
    fn of(mut deep: impl Iterator<Item = Deep>, world: &World, object: Option<&str>) -> Option<Self> {
        let Some(Deep::Plain { value }) = deep.next() else { return None };
        let root = |deep| if let Deep::Node { value } = deep { value.shadow_root } else { None };
        let roots: Vec<_> = deep.filter_map(root).map(|root| root.value).collect();
        let closed = roots.into_iter().filter(|root| root.mode.as_deref() == Some("closed"));
        let roots: Vec<_> = closed.map(|root| root.backend_node_id).collect();
        let names = object.map(|object| following(object, roots.len())).unwrap_or_default();
        Some(Self { world: world.clone(), number: value.as_i64()?, roots, names })
    }
}

impl CdpPage {
    /// Calls a verb that may name suspects beside its answer.
    pub(super) async fn script_and_suspects<T: DeserializeOwned>(
        &self,
        frame: &str,
        verb: &str,
        argument: &Value,
    ) -> Result<(T, Option<Suspects>), Failure> {
        let numbers = Numbers { first: self.state.frames().next_ref(), step: 1 };
        let arguments = [verb.into(), argument.clone(), numbers.first.into(), numbers.step.into()];
        let asked = |world: &World| deeply(call(world, &function(world, "callAndSuspect"), &arguments));
        let (world, reply) = self.reply_in_frame(frame, asked).await?;
        let (mut deep, object) = self.unpacked(&world, reply)?;
        let Some(Deep::Plain { value: Value::String(answer) }) = deep.next() else { return Err(Failure::NoDocument) };
        let answer = lenient::read(answer.as_bytes()).map_err(|error| Failure::Threw(error.to_string()))?;
        let value = self.answered(frame, &world, numbers, answer)?;
        Ok((value, Suspects::of(deep, &world, object.as_deref())))
    }

    /// Hands the page script of a frame the closed shadow roots of the elements it suspects, and says how many there are.
    pub(super) async fn open_closed_roots(&self, frame: &str) -> Result<usize, Failure> {
        let world = self.world_of(frame).await?;
        self.open_roots(&world).await
    }

    pub(super) async fn open_roots(&self, world: &World) -> Result<usize, Failure> {
        let suspects = deeply(call(world, "function () { return tabmux.suspects(); }", &[]));
        let reply = self.call_in(&world.session, &suspects).await?;
        let (deep, object) = self.unpacked(world, reply)?;
        let Some(suspects) = Suspects::of(deep, world, object.as_deref()) else { return Ok(0) };
        let found = suspects.roots.len();
        self.hand_over(suspects).await;
        Ok(found)
    }

    /// Sends all of it now. What is sent next meets the roots, unless they are called otherwise than was foretold: then they
    /// are handed over again, and it was late.
    pub(super) fn hand_over(&self, suspects: Suspects) -> impl Future<Output = Handed> + Send + use<> {
        let Suspects { world, number, roots, names } = suspects;
        let connection = self.connection.clone();
        let resolve =
            |id: &i64| ResolveNode { backend_node_id: Some(*id), execution_context_id: Some(world.context), ..ResolveNode::default() };
        let resolving = join_all(roots.iter().map(|id| connection.send(Some(&world.session), &resolve(id))));
        let first = connection.send(Some(&world.session), &handing(&world, number, &names));
        async move {
            // One that went meanwhile is not missed.
            let objects: Vec<_> = resolving.await.into_iter().flatten().filter_map(|reply| reply.object.object_id).collect();
            let handed = if objects == names && first.await.is_ok() {
                Handed::InTime
            } else {
                drop(connection.send(Some(&world.session), &handing(&world, number, &objects)).await);
                Handed::Late
            };
            for object_id in objects {
                drop(connection.send(Some(&world.session), &ReleaseObject { object_id }));
            }
            handed
        }
    }

    /// The members of an array that was written in full, and what it is called; it is let go.
    fn unpacked(&self, world: &World, reply: CallFunctionOnReply) -> Result<(std::vec::IntoIter<Deep>, Option<String>), Failure> {
        if let Some(details) = reply.exception_details {
            return Err(Failure::Threw(super::console::thrown(&details)));
        }
        let object = reply.result.object_id;
        if let Some(object_id) = object.clone() {
            drop(self.connection.send(Some(&world.session), &ReleaseObject { object_id }));
        }
        let whole = reply.result.deep_serialized_value.and_then(|whole| whole.value).unwrap_or_default();
        Ok((read::<Vec<Deep>>(whole)?.into_iter(), object))
    }
}

fn deeply(call: CallFunctionOn) -> CallFunctionOn {
    let options = SerializationOptions {
        serialization: "deep".into(),
        additional_parameters: Some(json!({ "includeShadowTree": "all", "maxNodeDepth": 0 })),
        ..SerializationOptions::default()
    };
    CallFunctionOn { serialization_options: Some(options), return_by_value: None, ..call }
}

fn handing(world: &World, number: i64, objects: &[String]) -> CallFunctionOn {
    let roots = objects.iter().map(|id| CallArgument { object_id: Some(id.clone()), ..CallArgument::default() });
    let mut call = call(world, HAND_OVER, &[number.into()]);
    call.arguments.get_or_insert_default().extend(roots);
    call
}

/// V8 numbers the objects of a world one after the other, behind its last dot.
fn following(object: &str, count: usize) -> Vec<String> {
    let Some((world, last)) = object.rsplit_once('.').and_then(|(world, last)| Some((world, last.parse::<usize>().ok()?))) else {
        return Vec::new();
    };
    (1..=count).map(|step| format!("{world}.{}", last + step)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_objects_are_called_by_the_next_numbers() {
        assert_eq!(following("-12.5.9", 2), ["-12.5.10", "-12.5.11"]);
        assert!(following("other", 2).is_empty() && following("1.2.3", 0).is_empty());
    }
}
