"""The services that tests stand on, each from its own module."""

pytest_plugins = [
    "tests.services.manifest",
    "tests.services.on_purpose",
    "tests.services.properties",
    "tests.services.postgres",
    "tests.services.node",
    "tests.services.chromium",
    "tests.services.server",
    "tests.services.chat",
]
