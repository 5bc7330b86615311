"""Every document can be found: from the front page, and from the list of documents."""

import pytest

from tests.docs.documents import DOCUMENTS, LINK, PROJECT

LISTS = (PROJECT / "README.md", PROJECT / "docs/README.md")
GUIDES = [d for d in DOCUMENTS if d.parent.name in ("guides", "reference")]
INTERNALS = [d for d in DOCUMENTS if d.parent.name == "internals"]


@pytest.mark.parametrize("document", GUIDES, ids=lambda d: d.stem)
def test_a_document_is_in_the_lists(document: object) -> None:
    for list_document in LISTS:
        links = {
            (list_document.parent / link).resolve()
            for link in LINK.findall(list_document.read_text())
        }
        assert document in links, list_document


@pytest.mark.parametrize("document", INTERNALS, ids=lambda d: d.stem)
def test_a_document_on_internals_is_in_the_list_of_documents(document: object) -> None:
    links = LINK.findall((PROJECT / "docs/README.md").read_text())
    assert document in {(PROJECT / "docs" / link).resolve() for link in links}


def test_a_decision_is_in_the_list_of_decisions() -> None:
    folder = PROJECT / "docs/adr"
    listed = set(LINK.findall((folder / "README.md").read_text()))
    assert {path.name for path in folder.glob("0*.md")} == listed
