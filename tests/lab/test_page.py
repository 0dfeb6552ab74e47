"""The page in headless Chromium: opened from disk, drawn on, and linked to."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from mercer import SVC, parse_kernel

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LECTURES = sorted((Path(__file__).parents[2] / "docs" / "lectures").glob("*.py"))
WAIT = 20_000  # milliseconds; nothing takes as long on a machine that does nothing else


@pytest.fixture(scope="module")
def browser(page):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install .[dev]")
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """The page in a tab of its own, and what it complained of."""

    def __init__(self, browser, page, link="", **options):
        context = browser.new_context(viewport={"width": 1440, "height": 1000}, **options)
        self.tab = context.new_page()
        self.complaints = []
        self.tab.on("console", lambda message: self.complaints.append(message.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on(
            "request", lambda request: self.complaints.append(request.url) if "http" in request.url[:4] else None
        )
        self.tab.set_default_timeout(WAIT)
        self.tab.goto(page.as_uri() + link)
        self.tab.wait_for_function("document.body.dataset.settled > 0")

    def state(self, name):
        return self.tab.evaluate(f"lab.store.state.{name}")

    def fact(self, name):
        return self.tab.locator(f"[data-fact='{name}']").inner_text()

    def settle(self):
        """Let the page draw what was done last, and all that it otherwise leaves for a pause of the user."""
        self.tab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        self.tab.evaluate("lab.settle()")

    def place(self, x, y):
        box = self.tab.locator("#plane").bounding_box()
        return box["x"] + (x + 3) / 6 * box["width"], box["y"] + (3 - y) / 6 * box["height"]


@pytest.fixture
def opened(browser, page):
    tabs = []

    def at(link="", **options):
        tabs.append(Tab(browser, page, link, **options))
        return tabs[-1]

    yield at
    for tab in tabs:
        tab.tab.context.close()
        assert tab.complaints == []


def test_it_opens_from_disk_with_a_certified_fit(opened):
    tab = opened()
    assert "certified" in tab.tab.locator("#certificate").inner_text()
    points = tab.state("points")
    X, c = np.array([[p["x"], p["y"]] for p in points]), np.array([p["c"] for p in points])
    model = SVC(kernel=parse_kernel(tab.state("kernel")), C=tab.state("C"), tol=1e-7).fit(X, c)
    assert float(tab.fact("primal")) == pytest.approx(model.certificate_.primal, rel=1e-5)
    assert int(tab.fact("support").split()[0]) == len(model.support_)


def test_points_are_drawn_dragged_deleted_and_brought_back(opened):
    tab = opened()
    mouse, before = tab.tab.mouse, len(tab.state("points"))
    primal = tab.fact("primal")
    mouse.click(*tab.place(-2.6, 2.6))
    tab.settle()
    assert tab.state("points")[-1] == {"x": pytest.approx(-2.6, abs=0.02), "y": pytest.approx(2.6, abs=0.02), "c": 0}
    assert tab.fact("primal") != primal
    mouse.move(*tab.place(-2.6, 2.6))
    mouse.down()
    mouse.move(*tab.place(0, 2.6), steps=5)
    mouse.move(*tab.place(2.6, 2.6), steps=5)
    mouse.up()
    tab.settle()
    assert tab.state("points")[-1]["x"] == pytest.approx(2.6, abs=0.02)
    mouse.click(*tab.place(2.6, 2.6), button="right")
    tab.settle()
    assert len(tab.state("points")) == before
    assert tab.fact("primal") == primal
    tab.tab.get_by_role("button", name="Undo").click()
    assert len(tab.state("points")) == before + 1


def test_the_keyboard_draws_moves_and_deletes(opened):
    tab = opened()
    before = len(tab.state("points"))
    tab.tab.locator("#plane").focus()
    for key in ["Shift+ArrowLeft"] * 5 + ["Shift+ArrowUp"] * 5 + ["Enter"]:
        tab.tab.keyboard.press(key)
    assert tab.state("points")[-1] == {"x": -2.5, "y": 2.5, "c": 0}
    for key in ("m", "ArrowRight", "m"):
        tab.tab.keyboard.press(key)
    assert tab.state("points")[-1]["x"] == -2.4
    tab.tab.keyboard.press("Delete")
    assert len(tab.state("points")) == before
    tab.tab.locator("#loss input[value=hinge]").focus()
    for _ in range(2):
        tab.tab.keyboard.press("ArrowRight")
        tab.settle()
    assert tab.state("loss") == "logistic"  # the choice has kept the focus


def test_a_finger_draws_and_drags(opened):
    tab = opened(has_touch=True)
    before = len(tab.state("points"))
    tab.tab.touchscreen.tap(*tab.place(-2.6, 2.6))
    assert len(tab.state("points")) == before + 1


def test_a_slider_takes_over_what_was_read_off_the_data(opened):
    tab = opened("#kernel=RBF()")
    tab.tab.locator("#sliders input[name=scale]").focus()
    for _ in range(3):
        tab.tab.keyboard.press("ArrowRight")
        tab.settle()
    assert isinstance(parse_kernel(tab.state("kernel")).scale, float)
    assert tab.tab.locator("#sliders output").inner_text() == tab.state("kernel").split("=")[1][:-1]


def test_a_slider_changes_the_kernel_and_the_certificate(opened):
    tab = opened()
    norm, steps = tab.fact("|f|"), tab.tab.locator("#sliders input[name=scale]")
    steps.focus()
    for _ in range(20):
        tab.tab.keyboard.press("ArrowLeft")
    tab.settle()
    assert 0 < parse_kernel(tab.state("kernel")).scale < 1
    assert tab.fact("|f|") != norm
    tab.tab.locator("#loss input[name=C]").focus()
    tab.tab.keyboard.press("Home")
    tab.settle()
    assert tab.state("C") == 0.001
    assert tab.fact("errors") != ""
    assert "certified" in tab.tab.locator("#certificate").inner_text()


def test_every_loss_is_certified(opened):
    tab = opened()
    seen = {tab.fact("primal")}
    losses = ["squared hinge", "logistic", "squared", "absolute", "pinball"]
    for loss in losses:
        tab.tab.locator("#loss").get_by_text(loss, exact=True).click()
        tab.settle()
        assert tab.state("loss") == loss.replace(" ", "_")
        assert "certified" in tab.tab.locator("#certificate").inner_text()
        seen.add(tab.fact("primal"))
        assert tab.tab.evaluate("lab.plane.before.shown !== undefined")  # where f was before
    assert len(seen) == 1 + len(losses)
    tab.tab.locator("#loss input[name=C]").focus()
    tab.tab.keyboard.press("ArrowRight")
    tab.settle()
    assert tab.tab.evaluate("lab.plane.before.shown === undefined")


def test_a_kernel_is_typed_proven_refused_and_refuted(opened):
    tab = opened()
    text = tab.tab.locator("#kernel")
    text.fill("RBF(scale=2) + 0.5 * Linear() ** 2")
    tab.settle()
    proof = tab.tab.locator("#proof").inner_text()
    assert "proven positive semidefinite" in proof
    assert "elementwise product of positive semidefinite matrices is one (Schur), repeated 2 times." in proof
    text.fill("RBF(scale=2) - Linear()")
    tab.settle()
    assert "k1 - k2 is refused" in tab.tab.locator("#error").inner_text()
    assert "No fit" in tab.tab.locator("#certificate").inner_text()
    text.fill("Sigmoid(gamma=1, c=-1)")
    tab.settle()
    assert re.search(r"refuted on these points: a′Ka = −.* < 0 for a witness", tab.tab.locator("#proof").inner_text())
    assert "no certificate" in tab.tab.locator("#certificate").inner_text()


def test_the_builder_makes_kernels_of_kernels(opened):
    tab = opened()
    tab.tab.get_by_text("Build a kernel").click()
    tab.tab.get_by_label("kernel to add").select_option("Linear")
    assert tab.tab.locator(".formula math").count() == 1
    tab.tab.get_by_role("button", name="k +").click()
    tab.tab.get_by_role("button", name="k²").click()
    assert tab.state("kernel") == "(RBF(scale=1) + Linear()) ** 2"


def test_every_view_of_every_kind_of_data(opened):
    tab = opened()
    for preset in ("Rings", "Three classes", "Sine with a gap"):
        tab.tab.get_by_role("button", name=preset).click()
        for view in ("points", "gram", "dual", "lift", "features", "map", "steps"):
            tab.tab.locator(f"#tab-{view}").click()
            tab.settle()
            assert tab.tab.locator(f"#tab-{view}").get_attribute("aria-selected") == "true"
            assert len(tab.tab.locator("#view").inner_text()) > 20


def test_a_cell_of_the_gram_matrix_lights_up_its_two_points(opened):
    tab = opened("#view=gram")
    box = tab.tab.locator("#view canvas").bounding_box()
    tab.tab.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.9 * box["height"])
    i, j = tab.tab.evaluate("lab.marked")
    assert tab.state("points")[i]["c"] == 1
    assert tab.state("points")[j]["c"] == 0
    assert f"k(x{i}, x{j}) = " in tab.tab.locator("#view").inner_text()


def test_random_features_come_near_the_kernel(opened):
    tab = opened("#view=features")
    X = np.array([[p["x"], p["y"]] for p in tab.state("points")])
    for kernel in ("RBF(scale=1)", "Laplacian(scale=1)", "Matern(nu=1.5, scale=1)", "Cauchy(scale=1)"):
        tab.tab.locator("#kernel").fill(kernel)
        tab.settle()
        errors = []
        for key in ("Home", "End"):
            tab.tab.locator("#view input[name=D]").press(key)
            said = tab.tab.locator("#view").inner_text()
            errors.append(float(re.search(r"Gram matrix: ([\d.]+)", said)[1]))
        deviation = np.sqrt((1 / 500) / (parse_kernel(kernel)(X) ** 2).mean())  # of the mean of 500 products
        assert errors[1] < 1.1 * deviation < 0.5 < errors[0], kernel


def test_one_walks_on_the_map_of_held_out_errors(opened):
    tab = opened("#view=map")
    tab.tab.locator("#view canvas").focus()
    C, scale = tab.state("C"), parse_kernel(tab.state("kernel")).scale
    tab.tab.keyboard.press("ArrowUp")
    tab.tab.keyboard.press("ArrowLeft")
    tab.settle()
    assert tab.state("C") > C
    assert parse_kernel(tab.state("kernel")).scale < scale


def test_the_perceptron_stops_where_the_classes_are_apart(opened):
    tab = opened("#view=steps")
    for _ in range(30):
        tab.tab.get_by_role("button", name="one pass").click()
    assert "without a mistake" in tab.tab.locator("#view").inner_text()
    tab.tab.locator("#view").get_by_text("Pegasos", exact=True).click()
    tab.tab.get_by_role("button", name="one pass").click()
    assert "updates" in tab.tab.locator("#view").inner_text()


def test_a_link_holds_the_whole_state(opened):
    tab = opened()
    tab.tab.get_by_role("button", name="Sine with a gap").click()
    tab.tab.locator("#loss").get_by_text("pinball", exact=True).click()
    tab.tab.locator("#kernel").fill("Matern(nu=2.5, scale=[0.7]) + Linear()")
    tab.settle()
    link = tab.tab.evaluate("location.hash")
    other = opened(link)
    assert other.tab.evaluate("lab.store.state") == tab.tab.evaluate("lab.store.state")
    assert other.fact("primal") == tab.fact("primal")  # the same numbers, to every digit that is shown


@pytest.mark.skipif(not LECTURES, reason="there are no lectures beside a wheel")
def test_each_lecture_ends_at_a_state_of_the_lab(opened):
    tab = opened()
    for path in LECTURES:
        (state,) = re.findall(r"^# \.\. lab:: (.*?)\n#\n", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        link = "#" + re.sub(r"\n# +", "", state)
        tab.tab.evaluate("(to) => new Promise((done) => { onhashchange = done; location.hash = to; })", link)
        tab.settle()
        assert tab.tab.evaluate("location.hash") == link, path.stem  # where it was, had the page not accepted it


MALFORMED = {
    "#kernel=RBF(": "could not be read",
    "#C=-1": "C is a number from 0.001 to 100000 in a link; this one says '-1'.",
    "#C=NaN": "C is a number",
    "#loss=zero-one": "loss is hinge",
    "#task=values&loss=hinge": "is for classes",
    "#view=<b>": "view is points",
    "#points=AAA": "groups of five characters",
    "#points=AAAA!": "point 1 of the link is none",
    "#points=%E0%A4%A": "groups of five characters",
}


def test_a_malformed_link_is_a_sentence_and_a_page_that_works(opened):
    tab = opened("#kernel=RBF(")
    for link, said in MALFORMED.items():
        tab.tab.evaluate("(hash) => { location.hash = hash; }", link)
        tab.tab.wait_for_function("(said) => document.getElementById('notice').textContent.includes(said)", arg=said)
        assert "certified" in tab.tab.locator("#certificate").inner_text()


def copied(tab, button, begins):
    tab.tab.get_by_role("button", name=button).click()
    tab.tab.wait_for_function("(begins) => document.body.dataset.copied?.startsWith(begins)", arg=begins)
    return tab.tab.evaluate("document.body.dataset.copied")


COPIED = {
    "Rings": "hinge",
    "Moons": "logistic",
    "Overlap": "squared",
    "Three classes": "squared hinge",
    "Sine with a gap": "pinball",
}


def test_what_is_copied_fits_the_same_machine(opened):
    tab = opened()
    for preset, loss in COPIED.items():
        tab.tab.get_by_role("button", name=preset).click()
        tab.tab.locator("#loss").get_by_text(loss, exact=True).click()
        tab.settle()
        primals = []
        code = copied(tab, "Copy as Python", "import").replace("print(model.certificate_)", "add(model.certificate_)")
        exec(code.replace("print(kernel.proof())", ""), {"add": lambda claim, to=primals: to.append(claim.primal)})
        unit = 1 if loss == "hinge" else tab.state("C")  # in a KernelMachine the losses have the price 1
        assert sum(primals) * unit == pytest.approx(float(tab.fact("primal")), rel=1e-5)
        target = "y" if preset == "Sine with a gap" else "class"
        assert f"mercer fit points.csv --target {target} --kernel " in copied(tab, "Copy as command", "cat")


def test_a_thousand_points(opened):
    tab = opened()
    tab.tab.evaluate(
        """lab.store.set({
          points: Array.from({ length: 1000 }, (_, i) => ({ x: Math.sin(i) * 2.5, y: Math.cos(i * i), c: i % 2 })),
        })"""
    )
    tab.settle()
    assert tab.fact("support").endswith("of 1000")
    assert tab.fact("gap") != ""


def test_lessons_and_an_empty_plane(opened):
    tab = opened()
    for lesson in tab.tab.locator("#lessons button").all():
        lesson.click()
        tab.settle()
        assert len(tab.tab.locator("#certificate").inner_text()) > 30
    tab.tab.get_by_role("button", name="clear").click()
    tab.settle()
    assert "No fit" in tab.tab.locator("#certificate").inner_text() or tab.fact("support") == "0 of 0"


def test_the_dark_is_dark(opened):
    def shade(tab):
        red, green, blue = tab.tab.evaluate("lab.colour('card')")
        return red + green + blue

    dark, light = opened(color_scheme="dark"), opened(color_scheme="light")
    assert shade(dark) < 200 < 600 < shade(light)
    light.tab.get_by_role("button", name="Light / dark").click()
    assert shade(light) == shade(dark)
