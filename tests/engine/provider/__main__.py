"""`pulumi-resource-gcp ENGINE`: prints its port and serves Pulumi's provider protocol until the engine ends it.

Settings come from the environment: SPOTRAIL_WORLD, the endpoint of a loopback Google Cloud, and SPOTRAIL_FAULTS,
a JSON list of what is to go wrong (see `tests.engine.provider.faults`).
"""

from __future__ import annotations

import asyncio
import os
import sys

from tests.engine.provider.cloud import Cloud
from tests.engine.provider.faults import faults_of
from tests.engine.provider.serving import serve
from tests.engine.provider.stand_in import StandIn

if __name__ == "__main__":
    provider = StandIn(
        cloud=Cloud(os.environ.get("SPOTRAIL_WORLD", "")), faults=faults_of(os.environ.get("SPOTRAIL_FAULTS", "[]"))
    )
    asyncio.run(serve(provider, sys.argv[1:]))
