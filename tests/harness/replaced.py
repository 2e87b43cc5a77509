"""A client of a service whose models are replaced while they answer."""

from dataclasses import replace

from semblance import AsyncClient
from semblance.types import Models


class Replaced(AsyncClient):
    """Of a service whose models are replaced while they answer."""

    asked = 0

    async def models(self) -> Models:
        found = await super().models()
        self.asked += 1
        return replace(found, models=[replace(each, fingerprint=f"{self.asked}") for each in found.models])
