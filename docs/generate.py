"""Write again what is made from the code: `make docs` calls it at the root of the checkout."""  # noqa: INP001 - a script

from __future__ import annotations

from pulsar_py.server.config_reference import main

if __name__ == "__main__":
    main()
