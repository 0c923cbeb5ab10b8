"""The parts of OpenAI's client that other servers' tests use, for machines without the package: implemented over
`requests`, with members of answers as attributes, streams, and errors by status."""

import asyncio
import json

import requests


class OpenAIError(Exception):
    pass


class APIConnectionError(OpenAIError):
    pass


class APITimeoutError(APIConnectionError):
    pass


class APIStatusError(OpenAIError):
    def __init__(self, message, response):
        super().__init__(message)
        self.message, self.response, self.status_code = message, response, response.status_code
        try:
            self.body = response.json().get("error")
        except (ValueError, AttributeError):
            self.body = None
        self.code = (self.body or {}).get("code")
        self.param = (self.body or {}).get("param")


class APIError(APIStatusError):
    pass


class BadRequestError(APIError):
    pass


class AuthenticationError(APIError):
    pass


class NotFoundError(APIError):
    pass


class UnprocessableEntityError(APIError):
    pass


class RateLimitError(APIError):
    pass


class InternalServerError(APIError):
    pass


BY_STATUS = {400: BadRequestError, 401: AuthenticationError, 404: NotFoundError, 422: UnprocessableEntityError,
             429: RateLimitError}


class Members(dict):
    """A JSON object whose missing members are None, as in the client's models."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def model_dump(self, exclude_none=False, **_):
        return {k: v for k, v in self.items() if v is not None or not exclude_none}

    @property
    def model_extra(self):
        return self


def _wrap(value):
    if isinstance(value, dict):
        return Members({k: _wrap(v) for k, v in value.items()})
    return [_wrap(v) for v in value] if isinstance(value, list) else value


class _Stream:
    def __init__(self, response):
        self.response = response

    def __iter__(self):
        for line in self.response.iter_lines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield _wrap(json.loads(line[6:]))

    async def __aiter__(self):
        for event in self:
            yield event
            await asyncio.sleep(0)

    def close(self):
        self.response.close()


class _Calls:
    def __init__(self, client, path):
        self._client, self._path = client, path

    def create(self, **fields):
        extra = fields.pop("extra_body", None) or {}
        headers = fields.pop("extra_headers", None) or {}
        timeout = fields.pop("timeout", None)
        return self._client.call("POST", self._path, {**fields, **extra}, headers, timeout)

    def list(self):
        return self._client.call("GET", self._path)

    def retrieve(self, name):
        return self._client.call("GET", f"{self._path}/{name}")


class _Awaited:
    """Runs the same calls on another thread."""

    def __init__(self, calls):
        self._calls = calls

    def __getattr__(self, name):
        async def call(*arguments, **fields):
            return await asyncio.to_thread(getattr(self._calls, name), *arguments, **fields)
        return call


class _Group:
    pass


class OpenAI:
    _awaits = False

    def __init__(self, api_key=None, base_url="", timeout=60, max_retries=0, default_headers=None, **_):
        self.api_key, self.base_url, self.timeout = api_key, str(base_url).rstrip("/"), timeout
        self.headers = default_headers or {}
        take = _Awaited if self._awaits else lambda calls: calls
        self.completions = take(_Calls(self, "completions"))
        self.responses = take(_Calls(self, "responses"))
        self.embeddings = take(_Calls(self, "embeddings"))
        self.models = take(_Calls(self, "models"))
        self.chat = _Group()
        self.chat.completions = take(_Calls(self, "chat/completions"))

    def call(self, method, path, body=None, headers=None, timeout=None):
        streams = bool(body and body.get("stream"))
        headers = {"Authorization": f"Bearer {self.api_key}", **self.headers, **(headers or {})}
        try:
            response = requests.request(method, f"{self.base_url}/{path}", json=body, stream=streams, headers=headers,
                                        timeout=timeout or self.timeout)
        except requests.Timeout as e:
            raise APITimeoutError(str(e)) from e
        except requests.ConnectionError as e:
            raise APIConnectionError(str(e)) from e
        if response.status_code >= 400:
            kind = BY_STATUS.get(response.status_code, InternalServerError if response.status_code >= 500 else APIError)
            raise kind(f"Error code: {response.status_code} - {response.text}", response)
        return _Stream(response) if streams else _wrap(response.json())

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class AsyncOpenAI(OpenAI):
    _awaits = True

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass
