"""The test of independence given z for libraries of causal discovery.

Each module is for one library, which it imports itself: `causal_learn`, `tigramite` and `pgmpy`.
`pip install 'deminat[causal]'` installs all three.
"""

from . import causal_learn, pgmpy, tigramite

__all__ = ["causal_learn", "pgmpy", "tigramite"]
