"""The places sparkpub can measure in. Adding one = a module here, a line below, a fixture in tests."""

from sparkpub.environments.base import Environment

ENVIRONMENTS: dict[str, Environment] = {}
