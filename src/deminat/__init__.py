"""How much does X tell you about Y?

    import deminat
    print(deminat.estimate(x, y))

`__init__.pyi` lists what is public. Names are imported on first use, so that `import deminat` and
the command line start at once.
"""

from typing import Any

import lazy_loader

__version__ = "0.1.0"
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
_RENAMED = {"choose_start": "choose_baseline"}


def __getattr__(name: str) -> Any:
    return _load(_RENAMED.get(name, name))
