"""`python -m deminat`: the command line, as torchrun starts it."""

from .cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
