"""`python -m sparkpub` is the command `sparkpub`."""

from sparkpub.cli import main

if __name__ == "__main__":
    main()
