"""How much does X tell you about Y?

    import deminat
    print(deminat.estimate(x, y))

`__init__.pyi` lists what is public. Names are imported on first use, so that `import deminat` and
the command line start at once.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
