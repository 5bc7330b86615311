"""Names of files are not left to a machine that sets no locale."""

import pytest

from slicewise.process.locales import with_utf8_names


@pytest.mark.parametrize(
    "env",
    [
        {"LANG": "C.UTF-8"},
        {"LANG": "de_DE.utf8@euro"},
        {"LC_ALL": "", "LC_CTYPE": "en_US.UTF-8", "LANG": "C"},
        {"LC_ALL": "C.UTF-8", "LANG": "POSIX"},
    ],
)
def test_a_locale_that_knows_all_letters_is_kept(env: dict[str, str]) -> None:
    assert with_utf8_names(env) == env


@pytest.mark.parametrize(
    "env", [{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "LANG": "C.UTF-8"}, {"LANG": "de_DE"}]
)
def test_another_one_is_replaced(env: dict[str, str]) -> None:
    assert with_utf8_names({**env, "PATH": "/bin"}) == {**env, "PATH": "/bin", "LC_ALL": "C.UTF-8"}
