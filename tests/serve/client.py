"""Requests to an application in this process."""

import asyncio

import httpx


class Client:
    """A browser without a screen: requests go straight to the application."""

    def __init__(self, app, root_path=""):
        self.transport = httpx.ASGITransport(app, root_path=root_path)

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def request(self, method, path, **options):
        return asyncio.run(self._request(method, path, **options))

    async def _request(self, method, path, **options):
        async with httpx.AsyncClient(transport=self.transport, base_url="http://here") as client:
            return await client.request(method, path, **options)
