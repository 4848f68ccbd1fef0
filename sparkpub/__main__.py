"""`python -m sparkpub` is the command `sparkpub`."""

import _signal as signal  # type: ignore[import-not-found] # in C: `signal` itself takes long enough to be interrupted


def main() -> None:
    """Run the command line. Until it can say something itself, Ctrl-C just ends the process: nothing has begun."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from sparkpub.cli import main as run  # noqa: PLC0415 - it takes a tenth of a second

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
