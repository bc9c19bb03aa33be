"""Settings of the documentation: `make docs` builds it into build/docs, without a network."""

import sys
from pathlib import Path

import deminat

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "deminat"
author = "the authors of deminat"
version = release = deminat.__version__
project_copyright = "MIT licence"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "rows",
    "commands",
    "docstrings",
]
exclude_patterns = ["_ext", "outputs"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3

default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# All references to deminat must resolve. Other libraries are not looked up: that needs a network.
nitpicky = True
nitpick_ignore_regex = [
    (r"py:.*", r"(?!deminat\.).*"),
    (  # internal classes
        r"py:class",
        r"deminat\.critics\.baselines\.base\..*|deminat\.data\.transforms\.(Norms|Indicators)|deminat\..*\._.*",
    ),
]

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "deminat"
html_static_path = ["_static"]
html_css_files = ["deminat.css"]
html_extra_path = ["outputs/report.html"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
