//! MCP's requests, turned into calls of `Dispatch` and back; one handler serves every protocol revision. What is
//! not declared (prompts, resources, completion) answers "method not found". Transports are deliberately absent.

#![expect(deprecated, reason = "logging/setLevel and resources/subscribe live on in older revisions, which the fixtures serve")]

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use futures::FutureExt;
use rmcp::RoleServer;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString,
    CustomRequest, CustomResult, ErrorCode, ErrorData, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestMethod, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
    SetLevelRequestParams, SubscribeRequestMethod, SubscribeRequestParams, Tool, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use serde_json::{Map, json};
use tabmux_core::{ClientId, Code, Fault};
use tabmux_tools::Level;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalog, LONGEST_ECHO};
use crate::turn::Ticket;
use crate::{Dispatch, HttpCaller, ToolAnswer, ToolCall, answer, caller, conformance, message};

/// How many calls of one connection may be open at once. Each session's own queue is shorter.
const MOST_OPEN_CALLS: usize = 1024;

/// How long a client may keep the tool list: it changes only with the program.
const LIST_TTL_MS: u64 = 60 * 60 * 1000;

const INSTRUCTIONS: &str = "tabmux gives each agent its own browser session. navigate or start_browser makes one; \
     pass sessionId to address a session by name. A failed call begins with [code] and ends with what to do next.";

/// The MCP server of one connection, or of one HTTP request.
#[derive(Clone)]
pub struct Handler {
    dispatch: Arc<dyn Dispatch>,
    catalog: Catalog,
    level: Level,
    caller: Caller,
    fixtures: Fixtures,
    open_calls: Arc<Semaphore>,
    /// Set when the connection is lost, as opposed to a call being cancelled.
    lost: CancellationToken,
}

/// Whether the MCP conformance suite's own tools, resources and prompts are there too. Tests only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixtures {
    None,
    Conformance,
}

#[derive(Clone, Copy, Debug)]
enum Caller {
    Connection(ClientId),
    /// Each request names its caller, `HttpCaller`.
    Http,
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("caller", &self.caller).field("fixtures", &self.fixtures).finish_non_exhaustive()
    }
}

impl Handler {
    /// For one line connection.
    pub fn new(dispatch: Arc<dyn Dispatch>, catalog: Catalog, client: ClientId) -> Self {
        Self::with_caller(dispatch, catalog, Caller::Connection(client))
    }

    pub(crate) fn for_http(dispatch: Arc<dyn Dispatch>, catalog: Catalog) -> Self {
        Self::with_caller(dispatch, catalog, Caller::Http)
    }

    fn with_caller(dispatch: Arc<dyn Dispatch>, catalog: Catalog, caller: Caller) -> Self {
        let open_calls = Arc::new(Semaphore::new(MOST_OPEN_CALLS));
        Self { dispatch, catalog, level: Level::default(), caller, fixtures: Fixtures::None, open_calls, lost: CancellationToken::new() }
    }

    /// How many tools this endpoint lists (`--tools`). Every tool stays callable.
    #[must_use]
    pub fn showing(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    #[must_use]
    pub fn with_fixtures(mut self, fixtures: Fixtures) -> Self {
        self.fixtures = fixtures;
        self
    }

    pub(crate) fn on_connection(mut self, lost: CancellationToken) -> Self {
        self.lost = lost;
        self
    }

    fn serves_fixtures(&self) -> bool {
        self.fixtures == Fixtures::Conformance
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Result<ClientId, ErrorData> {
        match self.caller {
            Caller::Connection(client) => Ok(client),
            Caller::Http => {
                let parts = context.extensions.get::<http::request::Parts>();
                let caller = parts.and_then(|parts| parts.extensions.get::<HttpCaller>());
                let unknown = || ErrorData::internal_error("The HTTP door did not say who calls.", None);
                caller.map(|caller| caller.client).ok_or_else(unknown)
            }
        }
    }

    /// Runs a call: first, in the order the calls came, as far as the hub decides at once; then to its end. A panic
    /// in it ends that call and not the answer.
    async fn run(&self, call: ToolCall, context: &RequestContext<RoleServer>) -> ToolAnswer {
        let mut turn = context.extensions.get::<Ticket>().and_then(Ticket::take);
        if let Some(turn) = &mut turn {
            turn.come().await;
        }
        let Ok(permit) = self.open_calls.clone().try_acquire_owned() else {
            let message = format!("{MOST_OPEN_CALLS} calls of this client are already open.");
            return ToolAnswer {
                outcome: Err(Fault::new(Code::QueueFull, message, "Wait for some of them to be answered.")),
                result: Map::new(),
            };
        };
        let (cancel, tool) = (call.cancel.clone(), call.tool.clone());
        let mut running = std::pin::pin!(AssertUnwindSafe(self.dispatch.call(call)).catch_unwind());
        let begun = futures::poll!(&mut running);
        drop(turn);
        let ended = match begun {
            Poll::Ready(ended) => ended,
            Poll::Pending => tokio::select! {
                ended = &mut running => ended,
                () = context.ct.cancelled() => {
                    if !self.lost.is_cancelled() {
                        cancel.cancel();
                    }
                    running.await
                }
            },
        };
        drop(permit);
        ended.unwrap_or_else(|_| {
            // The panic itself is in the log.
            let fault =
                Fault::new(Code::Internal, format!("{tool} ended in a defect of tabmux."), "Look into `tabmux logs`; other calls go on.");
            ToolAnswer { outcome: Err(fault), result: Map::new() }
        })
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            if self.serves_fixtures() { conformance::capabilities() } else { ServerCapabilities::builder().enable_tools().build() };
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("tabmux", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    /// As rmcp's own, but the peer is remembered with the version that was agreed on, not the one it asked for.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.catalog.shown(self.level);
        if self.serves_fixtures() {
            tools.extend(conformance::tools());
        }
        let list = ListToolsResult::with_all_items(tools);
        if !caller::is_new_era(&context) {
            return Ok(list);
        }
        let scope = if self.level == Level::default() { CacheScope::Public } else { CacheScope::Private };
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(scope))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let fixture = || self.serves_fixtures().then(conformance::tools)?.into_iter().find(|tool| tool.name == name);
        self.catalog.get(name).cloned().or_else(fixture)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        if self.catalog.get(&request.name).is_none() && !tabmux_tools::is_for_later(&request.name) {
            if self.serves_fixtures() && conformance::has_tool(&request.name) {
                // Boxed: each call's task is as large as its largest branch, and this one is ten times the rest.
                return Box::pin(conformance::call_tool(request, context)).await;
            }
            return Err(self.catalog.unknown(&request.name));
        }
        let call = ToolCall {
            client: self.client(&context)?,
            client_name: caller::client_name(&context),
            agent: caller::agent(&context.meta.0.0),
            waited: caller::waited(&context.meta.0.0),
            tool: request.name.into_owned(),
            args: request.arguments.unwrap_or_default(),
            cancel: CancellationToken::new(),
        };
        Ok(answer::to_result(self.run(call, &context).await).into())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        if self.serves_fixtures() { Ok(conformance::prompts()) } else { Err(no_method(ListPromptsRequestMethod::VALUE)) }
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        if self.serves_fixtures() { conformance::get_prompt(request) } else { Err(no_method(GetPromptRequestMethod::VALUE)) }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        if self.serves_fixtures() { Ok(conformance::resources()) } else { Err(no_method(ListResourcesRequestMethod::VALUE)) }
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        if self.serves_fixtures() {
            Ok(conformance::resource_templates())
        } else {
            Err(no_method(ListResourceTemplatesRequestMethod::VALUE))
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if self.serves_fixtures() {
            conformance::read_resource(&request.uri).map(Into::into)
        } else {
            Err(no_method(ReadResourceRequestMethod::VALUE))
        }
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        if self.serves_fixtures() { Ok(CompleteResult::default()) } else { Err(no_method(CompleteRequestMethod::VALUE)) }
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.serves_fixtures() { Ok(()) } else { Err(no_method(SetLevelRequestMethod::VALUE)) }
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.serves_fixtures() { Ok(()) } else { Err(no_method(SubscribeRequestMethod::VALUE)) }
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        if self.serves_fixtures() { Ok(()) } else { Err(no_method(UnsubscribeRequestMethod::VALUE)) }
    }

    async fn on_custom_request(&self, request: CustomRequest, _: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        Err(no_method(&request.method))
    }
}

fn no_method(method: &str) -> ErrorData {
    let asked: String = method.chars().take(LONGEST_ECHO).collect();
    let data = json!({ "code": Code::Unsupported.name(), "hint": message::NO_METHOD_HINT });
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("Unknown method {asked}."), Some(data))
}
