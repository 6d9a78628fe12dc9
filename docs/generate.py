"""Write again what is made from the code: `make docs` calls it at the root of the checkout."""  # noqa: INP001 - tools of the checkout, no package

from __future__ import annotations

from docs import client_api, openapi, spark_options
from pulsar_py.admin import without_effect
from pulsar_py.server import config_reference

if __name__ == "__main__":
    config_reference.main()
    without_effect.main()
    client_api.main()
    spark_options.main()
    openapi.main()
