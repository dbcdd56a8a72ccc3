"""`/api/v1/runs`: a run, and its completion by programs without MCP."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lamplighter.domain.access import Verb, require
from lamplighter.domain.runs.completion import parse
from lamplighter.kit.errors import UsageError
from lamplighter.ports.runs import CompletionService
from lamplighter.web import views
from lamplighter.web.auth import caller_in, session_in
from lamplighter.web.bodies import json_object


def routes(service: CompletionService) -> list[Route]:
    async def complete(request: Request) -> Response:
        """The path names the run; a body that names another one is refused."""
        run = request.path_params["run"]
        body = await json_object(request)
        completion = parse({"run_id": run} | body)
        if completion.run != run:
            raise UsageError(f"The body names run {completion.run}, the path {run}.", hint="Name one run.")
        done = await service.complete(completion, caller=caller_in(request.scope), session=session_in(request.scope))
        return JSONResponse(views.completed(done))

    async def show(request: Request) -> Response:
        caller = caller_in(request.scope)
        require(caller, Verb.READ)
        return JSONResponse(dict(await service.run(request.path_params["run"], caller=caller)))

    return [
        Route("/api/v1/runs/{run}/complete", complete, methods=["POST"]),
        Route("/api/v1/runs/{run}", show, methods=["GET"]),
    ]
