"""`python -m pulsar_py` is `pulsar-py`, where the command is not on the PATH."""

from pulsar_py.cli.main import main

if __name__ == "__main__":
    main(prog_name="python -m pulsar_py")
