"""The measures of `python -m tests.house`, on a checkout of a few lines."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.house import docstrings, help_texts, imports, names, sizes
from tests.house.checkout import Checkout
from tests.house.measure import Measure

PROJECT_FILE = '[tool.importlinter]\nroot_packages = ["slicewise", "shop_app"]\n'


@pytest.fixture(scope="module")
def project() -> Checkout:
    """Return the checkout of the tests: its modules are parsed once."""
    return Checkout()


def checkout(folder: Path, files: dict[str, str]) -> Checkout:
    """Write files below a folder, with empty packages around modules."""
    (folder / "pyproject.toml").write_text(PROJECT_FILE)
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
    return Checkout(folder)


def by_name(measures: list[Measure]) -> dict[str, Measure]:
    """Index measures by the names of their limits."""
    return {measure.limit_name: measure for measure in measures}


def test_vague_words_are_counted_in_docstrings_alone(tmp_path: Path) -> None:
    text = '''
        """What they hold."""
        # what they say
        TEXT = "what they print"
        def price():
            """The price that its shop asks."""
    '''
    measured = by_name(docstrings.measures(checkout(tmp_path, {"shop_app/a.py": text})))
    assert measured["what"].value == round(1000 / 9, 2)
    assert measured["what"].places == ["shop_app/a.py:1 what"]
    assert measured["pronouns"].places == ["shop_app/a.py:1 they", "shop_app/a.py:5 its"]


def test_pronouns_are_counted_in_help_texts_of_fields_and_commands(tmp_path: Path) -> None:
    text = '''
        """They hold what it needs."""
        price = Field(help_text="The price,"
            f" as they say {its}.")
        OPTIONS = {"help": "what it does", "metavar": "IT"}
        class Command:
            help = "Print it."
            label = "it"
            def add_arguments(self, parser):
                self.add_verb(parser, "it", self.it, "Show them.")
                parser.add_argument("it", default="its", help="Prices")
    '''
    files = {"shop_app/a.py": text, "bench/sales.py": 'option(help="those")\n'}
    (measured,) = help_texts.measures(checkout(tmp_path, files))
    assert sorted(measured.places) == [
        "bench/sales.py:1 those",
        "shop_app/a.py:10 them",
        "shop_app/a.py:3 they",
        "shop_app/a.py:5 it",
        "shop_app/a.py:5 what",
        "shop_app/a.py:7 it",
    ]
    assert measured.value == round(1000 * 6 / 14, 2)


def test_docstrings_of_bench_are_measured_apart(tmp_path: Path) -> None:
    module = 'def sell():\n    """What it sells."""\n'
    files = {"bench/sales.py": module, "bench/bundles/shop.py": module}
    measured = by_name(docstrings.measures(checkout(tmp_path, files)))
    assert measured["bench_pronouns"].places == ["bench/sales.py:1 what", "bench/sales.py:1 it"]
    assert measured["bench_no_verb"].places == ["bench/sales.py:1 what"]
    assert measured["pronouns"].places == []


def test_public_functions_begin_with_a_verb_but_not_properties(tmp_path: Path) -> None:
    text = '''
        def price():
            """Return the price."""
        def total():
            """The total."""
        def undocumented(): ...
        def _private():
            """The secret."""
        class Shop:
            @property
            def name(self):
                """The name."""
            async def sell(self):
                """Sells it."""
                def inner():
                    """The inside."""
        class _Hidden:
            def price(self):
                """The price."""
    '''
    measured = by_name(docstrings.measures(checkout(tmp_path, {"shop_app/a.py": text})))
    assert measured["no_verb"].places == ["shop_app/a.py:4 the", "shop_app/a.py:13 sells"]
    assert measured["no_verb"].value == round(200 / 3, 2)


def test_arguments_and_variables_are_local_names(tmp_path: Path) -> None:
    text = """
        found = 1
        class Shop:
            def sell(self, price, *others, **given):
                for each, _place in price:
                    found.total = [piece for piece in others]
                def inner(one): ...
    """
    measured = by_name(names.measures(checkout(tmp_path, {"shop_app/a.py": text})))
    places = measured["pronoun_names"].places
    words = {place.split()[1] for place in places}
    assert words == {"others", "given", "each", "piece", "one"}
    assert len(places) == 5
    assert measured["vague_names"].places == ["shop_app/a.py:4 place"]
    assert measured["vague_names"].value == round(100 / 7, 2)


def test_a_name_occurs_twice_in_an_app_but_not_in_two_layers_or_apps(tmp_path: Path) -> None:
    files = dict.fromkeys(
        (
            *("shop_app/sale/prices.py", "shop_app/stock/prices.py", "slicewise/prices.py"),
            *("shop_app/views/sales.py", "shop_app/sale/sales.py"),
            *("shop_app/sale/tasks.py", "shop_app/stock/tasks.py"),
            *("shop_app/sale/__init__.py", "shop_app/stock/__init__.py"),
            *("shop_app/sale/__main__.py", "shop_app/stock/__main__.py"),
            *("shop_app/migrations/goods.py", "shop_app/stock/goods.py"),
        ),
        "",
    )
    measured = by_name(names.measures(checkout(tmp_path, files)))
    assert measured["repeated_modules"].places == [
        "shop_app/sale/prices.py shop_app/stock/prices.py"
    ]


def test_circles_are_told_apart_by_where_their_imports_stand(tmp_path: Path) -> None:
    files = {
        "slicewise/__init__.py": "",
        "slicewise/a.py": "import json\nfrom slicewise import b\n",
        "slicewise/b.py": "from .c import name\n",
        "slicewise/c.py": "def f():\n    import slicewise.b\n",
        "slicewise/d/__init__.py": "from typing import TYPE_CHECKING\nfrom ..a import name\n",
        "slicewise/d/e.py": "from . import f\n",
        "slicewise/d/f.py": "",
        "shop_app/sale.py": "import typing\nif typing.TYPE_CHECKING:\n    import shop_app.till\n",
        "shop_app/till.py": "try:\n    from shop_app import sale, bags\nexcept ImportError: ...\n",
        "shop_app/bags.py": "from shop_app.sale import Sale\n",
    }
    measured = by_name(imports.measures(checkout(tmp_path, files)))
    assert measured["circle"].value == 0
    assert measured["circle_functions"].places == ["2 modules: slicewise.b slicewise.c"]
    assert measured["circle_typing"].value == 3
    assert measured["circle_typing"].places[0].endswith("shop_app.bags shop_app.sale shop_app.till")
    assert measured["function_imports"].places == ["slicewise/c.py:2 slicewise.b"]
    assert measured["typing_imports"].places == ["shop_app/sale.py:3 shop_app.till"]


def test_servers_import_from_rooms_and_from_modules_of_programs(tmp_path: Path) -> None:
    files = {
        "slicewise/__init__.py": "",
        "slicewise/shelf/__init__.py": "from slicewise.shelf.box import Box\n",
        "slicewise/shelf/box.py": "",
        "slicewise/runner/__init__.py": "",
        "slicewise/runner/start.py": "from slicewise.shelf.box import Box\n",
        "shop_app/till.py": "from slicewise.shelf import Box\nimport slicewise.runner.start\n",
        "shop_app/sale.py": "from slicewise.shelf.box import Box\n",
    }
    measured = by_name(imports.measures(checkout(tmp_path, files)))["room_imports"]
    assert measured.places == ["shop_app/sale.py:1 slicewise.shelf.box"]


def test_a_test_module_that_another_module_imports_is_counted_once(tmp_path: Path) -> None:
    files = {
        "tests/__init__.py": "",
        "tests/shop/__init__.py": "",
        "tests/shop/prices.py": "",
        "tests/shop/test_sale.py": "from tests.shop.prices import price\n",
        "tests/shop/test_till.py": "def f():\n    from tests.shop.test_sale import a, b\n",
        "tests/shop/conftest.py": "from . import prices, test_sale\n",
        "shop_app/demo.py": "from tests.shop.test_till import f\n",
    }
    measured = by_name(imports.measures(checkout(tmp_path, files)))["test_module_imports"]
    assert measured.value == 2
    assert measured.places == [
        "shop_app/demo.py:1 tests.shop.test_till",
        "tests/shop/conftest.py:1 tests.shop.test_sale",
        "tests/shop/test_till.py:2 tests.shop.test_sale",
    ]


def test_no_circle_of_imports_has_a_module_of_the_sdk(project: Checkout) -> None:
    measured = by_name(imports.measures(project))
    assert [place for place in measured["circle_typing"].places if " slicewise." in place] == []


def test_late_imports_with_a_reason_are_counted_apart(tmp_path: Path) -> None:
    files = {
        "shop_app/till.py": "def f():\n    import shop_app.bags\n",
        "shop_app/bags.py": "def f():\n    import pyspark.sql, pickle\n    import pyspark\n",
        "shop_app/management/commands/sell.py": "def f():\n    from shop_app import bags\n",
    }
    measured = by_name(imports.measures(checkout(tmp_path, files)))
    assert measured["function_imports"].places == ["shop_app/till.py:2 shop_app.bags"]
    assert measured["package_imports"].places == ["shop_app/bags.py:2 pickle"]
    (place,) = measured["late_imports"].places
    assert place == "shop_app/management/commands/sell.py:2 shop_app.bags"


def test_each_reason_for_late_imports_is_that_of_a_module(project: Checkout) -> None:
    assert imports.patterns_in_use(project) == set(imports.late_import_reasons("modules"))


def test_each_reason_for_a_late_package_is_that_of_an_import(project: Checkout) -> None:
    late = {line.imported for line in imports.late_packages(project)}
    assert late == set(imports.late_import_reasons("packages"))


def test_sizes_name_long_files_and_lines(tmp_path: Path) -> None:
    files = {
        "slicewise/__init__.py": "",
        "slicewise/io/long.py": "\n" * 301,
        "slicewise/short.py": "\n" * 300,
        "templates/shop/sale.html": f"{'a' * 120}\n{'b' * 121}\n",
    }
    measured = by_name(sizes.measures(checkout(tmp_path, files)))
    assert measured["slicewise_files"].places == ["slicewise/__init__.py", "slicewise/short.py"]
    assert measured["long_modules"].places == ["slicewise/io/long.py 301 lines"]
    assert measured["template_lines"].places == ["templates/shop/sale.html:2 121 characters"]
