"""`python -m pulsar_py`, which hands over to this room, and `python -m pulsar_py.cli`."""

from pulsar_py.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m pulsar_py")
