"""`/api/v1/configurations`: where and with what agent runs work."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lamplighter.services.configurations import Configurations
from lamplighter.web.auth import caller_in
from lamplighter.web.bodies import json_object

PATH = "/api/v1/configurations"


def routes(service: Configurations) -> list[Route]:
    async def every(request: Request) -> Response:
        return JSONResponse(await service.every(caller=caller_in(request.scope)))

    async def create(request: Request) -> Response:
        made = await service.create(await json_object(request), caller=caller_in(request.scope))
        return JSONResponse(made, status_code=201, headers={"Location": f"{PATH}/{made['name']}"})

    async def show(request: Request) -> Response:
        return JSONResponse(await service.show(request.path_params["name"], caller=caller_in(request.scope)))

    async def edit(request: Request) -> Response:
        name, changes = request.path_params["name"], await json_object(request)
        return JSONResponse(await service.edit(name, changes, caller=caller_in(request.scope)))

    async def delete(request: Request) -> Response:
        await service.delete(request.path_params["name"], caller=caller_in(request.scope))
        return Response(status_code=204)

    return [
        Route(PATH, every, methods=["GET"]),
        Route(PATH, create, methods=["POST"]),
        Route(f"{PATH}/{{name}}", show, methods=["GET"]),
        Route(f"{PATH}/{{name}}", edit, methods=["PATCH"]),
        Route(f"{PATH}/{{name}}", delete, methods=["DELETE"]),
    ]
