"""How the pages are built: the Markdown files beside this one, the examples, and the library's docstrings."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import reference  # noqa: E402

os.environ.setdefault("MPLBACKEND", "agg")

project, author, copyright = "mercer", "The Mercer developers", "The Mercer developers"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # the pages need nothing from elsewhere
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["lectures"]
default_role = "py:obj"  # a name in single quotes of a docstring is a link where there is such a name

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autosummary_generate = False  # the pages of names are made by reference.py
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

# A folder of lecture scripts joins the examples when there is one.
galleries = {"../examples": "generated/examples", "lectures": "generated/lectures"}
galleries = {scripts: pages for scripts, pages in galleries.items() if (HERE / scripts).exists()}
sphinx_gallery_conf = {
    "examples_dirs": list(galleries),
    "gallery_dirs": list(galleries.values()),
    "filename_pattern": "/plot_",
    "backreferences_dir": "generated/uses",
    "doc_module": ("mercer",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
}

html_theme = "furo"
html_title = "mercer"
html_static_path = ["static"]
html_css_files = ["mercer.css"]
html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"  # prompts and answers are not copied


def leave_out_absent(app, docname, source):
    """Take the pages that need not be there, such as the lectures beside an archive, out of the front page's lists."""
    absent = {"generated/lectures/index", "plots", "lab"} - app.env.found_docs
    if docname == "index":
        source[0] = "\n".join(line for line in source[0].split("\n") if line not in absent)


def setup(app):
    app.connect("source-read", leave_out_absent)
    app.connect("builder-inited", lambda app: reference.write(HERE), priority=100)
    app.connect("autodoc-process-docstring", reference.as_markup, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", reference.is_of_others)
