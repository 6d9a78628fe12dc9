"""`python -m pulsar_py` is `pulsar-py`, where the command is not on the PATH."""

import runpy

if __name__ == "__main__":
    # By name: this module lies above all rooms, and no import leads up to the command.
    runpy.run_module("pulsar_py.cli", run_name="__main__")
