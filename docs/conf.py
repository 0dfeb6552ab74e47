"""How the pages are built: the Markdown files beside this one, the examples, and the library's docstrings."""

import os
import sys
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import pages  # noqa: E402

from mercer.cli.demo import LAB  # noqa: E402

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
lab_pages = [str(LAB)] if LAB.exists() else []
html_static_path = ["static", *lab_pages]
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


class Lab(SphinxDirective):
    """What to try in the lab, and the lab at a state: all that its "Copy link" copies after the #."""

    optional_arguments = 1
    final_argument_whitespace = True  # long states take several lines
    has_content = True

    def run(self) -> list[nodes.Node]:
        if not self.config.lab_pages:
            return [nodes.paragraph("", "The lab would be here, had its page been built: run “make lab”.")]
        state = "".join("".join(self.arguments).split())
        link = escape(f"{'../' * self.env.docname.count('/')}_static/{LAB.name}#{state}")
        alone = nodes.raw("", f'<p><a href="{link}" target="_blank">Open it in a tab of its own</a></p>', format="html")
        frame = f'<iframe class="lab" src="{link}" title="The lab" loading="lazy"></iframe>'
        return [*self.parse_content_to_nodes(), nodes.raw("", frame, format="html"), alone]


def setup(app):
    app.add_config_value("lab_pages", [], "env")  # pages are read again once there is one
    app.add_directive("lab", Lab)
    app.connect("source-read", as_shown)
    app.connect("builder-inited", lambda app: pages.write(HERE), priority=100)
    app.connect("autodoc-process-docstring", pages.as_markup, priority=400)  # before numpydoc
    app.connect("autodoc-skip-member", pages.is_of_others)
