"""The shape of a server's test tools, without a server."""
from dataclasses import dataclass


@dataclass
class Response:
    status: int
    body: dict


def make_request():
    return Response(200, {"content": "a", "tokens": [1]})
