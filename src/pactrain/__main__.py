"""`python -m pactrain`."""

from pactrain.cli.main import main

if __name__ == "__main__":
    main()
