"""Sphinx's settings for the book; tools/book/__main__.py runs it with them."""

from warplab import __version__

project, author, release = "Warp Lab", "The Warp Lab authors", __version__
copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "tools.book.extension"]
language, html_theme, html_title = "en", "furo", "Warp Lab"
html_static_path, html_css_files = ["static"], ["book.css"]
html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"  # by the browser itself: nothing is fetched
nb_execution_mode = "off"  # outputs are those that the lessons were saved with
nb_merge_streams = True
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"show-inheritance": False}
# Lessons begin some headings a level deeper, and leave things out of code by "…".
suppress_warnings = ["misc.highlighting_failure", "myst.header"]
