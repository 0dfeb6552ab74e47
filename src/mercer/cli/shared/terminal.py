"""Tables, colours and widths of the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from mercer.kernels import Proof

WIDTH = 100
STATUS = {"proven": "green", "unproven": "yellow", "refuted": "red"}


class _Terminal(Console):
    """A console that passes a closed pipe on to the command, whose exit code says it."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def terminal() -> Console:
    """Return the console for standard output: at most 100 columns wide, without colours when piped."""
    console = _Terminal(highlight=False)
    console.width = min(console.width, WIDTH)
    return console


def heading(console: Console, number: int, words: str) -> None:
    """Print the title of a section."""
    console.print()
    console.rule(Text.assemble((f"{number}  ", "dim"), (words, "bold")), align="left", style="dim")
    console.print()


def code(line: str) -> Text:
    """Return a line of Python as it would be typed."""
    return Text.assemble((">>> ", "dim"), (line, "cyan"))


def error(raised: Exception) -> Text:
    """Return an exception as the interpreter would end its report."""
    return Text.assemble((f"{type(raised).__name__}: ", "bold red"), str(raised))


def indented(what: RenderableType) -> Padding:
    """Return the renderable four columns to the right."""
    return Padding(what, (0, 0, 0, 4), expand=False)


def facts(console: Console, *rows: tuple[str, str]) -> None:
    """Print names and what is known of them, in two columns."""
    grid = Table.grid(padding=(0, 2))
    for name, value in rows:
        grid.add_row(Text(name, style="dim"), value)
    console.print(indented(grid))


def status(word: str) -> Text:
    """Return the status of a proof in its colour."""
    return Text(word, style=STATUS[word])


def tree(proof: Proof) -> Tree:
    """Return a proof as a tree: under each kernel the rule that makes it one, then the kernels it is made from.

    Examples
    --------
    >>> from rich.console import Console
    >>> from mercer import Linear
    >>> from mercer.cli.shared.terminal import tree
    >>> Console(width=110, force_terminal=False).print(tree((Linear() + 1.0).proof()))
    Linear() + Constant()  proven
    sum: a'(K1 + K2)a = a'K1a + a'K2a >= 0.
    ├── Linear()  proven
    │   inner product: k(x, z) = <x, z> is the inner product itself; the feature map is the identity.
    └── Constant()  proven
        feature map: Phi(x) = sqrt(c) for every x, so a'Ka = c (sum a_i)^2 >= 0.
    """
    root = Tree(_step(proof), guide_style="dim")
    _grow(root, proof)
    return root


def _grow(node: Tree, proof: Proof) -> None:
    for part in proof.parts:
        _grow(node.add(_step(part)), part)


def _step(proof: Proof) -> Group:
    claim = Text.assemble((proof.claim, "bold"), "  ", status(proof.status))
    return Group(claim, Text.assemble((proof.rule, "italic"), (f": {proof.reason}", "dim")))


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Return an empty table with a rule under its header and no other lines."""
    made = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left")
    return made
