"""Sphinx: `make docs` builds the pages into docs/_build."""

from importlib.metadata import version as version_of

project = "Weft"
author = "The Weft authors"
version = release = version_of("weft")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
default_role = "code"

html_theme = "furo"
html_title = "Weft"
