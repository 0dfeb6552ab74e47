"""How the pages are built: the Markdown files beside this one, the examples, and the library's docstrings."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

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

autosummary_generate = False  # the pages of names are made by pages.py
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # autodoc lists them

# A folder of lecture scripts joins the examples when there is one.
galleries = {"../examples": "generated/examples", "lectures": "generated/lectures"}
galleries = {scripts: shown for scripts, shown in galleries.items() if (HERE / scripts).exists()}
sphinx_gallery_conf = {
    "examples_dirs": list(galleries),
    "gallery_dirs": list(galleries.values()),
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib", "pages.figures"),
    "backreferences_dir": "generated/uses",
    "doc_module": ("mercer",),
    "ignore_repr_types": r"matplotlib|mercer\.plots",  # of a figure the picture is shown
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
}

html_theme = "furo"
html_title = "mercer"
html_static_path = ["static"]
html_css_files = ["mercer.css"]
html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"  # prompts and answers are not copied


def as_shown(app, docname, source):
    """Leave out what speaks of pages that need not be there, and the empty line that ends an example."""
    lines = source[0].replace("\n\n```\n", "\n```\n").split("\n")
    for name in {"generated/lectures/index", "conventions", "plots", "lab"} - app.env.found_docs:
        lines = [line for line in lines if line != name and f"]({name}.md)" not in line]
        lines = [line.replace(f":link: {name}", ":link: generated/examples/index") for line in lines]
    source[0] = "\n".join(lines)


def setup(app):
    app.connect("source-read", as_shown)
    app.connect("builder-inited", lambda app: pages.write(HERE), priority=100)
    app.connect("autodoc-process-docstring", pages.as_markup, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", pages.is_of_others)
