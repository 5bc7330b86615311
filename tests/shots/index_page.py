"""The page that shows the pictures of all catalogues side by side."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from tests.shots.pictures import PicturedPage

_STYLE = """
body { font: 14px system-ui, sans-serif; margin: 1.5rem; background: #ddd; }
h2 { position: sticky; top: 0; background: #ddd; padding: .5rem 0; margin: 2rem 0 0; }
section { display: grid; grid-template-columns: 3fr 3fr 1fr 1fr; gap: .75rem; align-items: start;
  border-top: 1px solid #999; padding: .75rem 0; }
section > :is(h3, ul) { grid-column: 1 / -1; margin: 0; }
h3 { font: 600 14px monospace; } ul { color: #b00; }
img { width: 100%; max-height: 32rem; object-fit: cover; object-position: top; background: #fff; }
"""
_HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Pictures of all pages</title>'


def write_index(folder: Path, catalogues: Mapping[str, Sequence[PicturedPage]]) -> Path:
    """Write ``index.html`` beside the folders of the catalogues, and return its path."""
    links = " ".join(f'<a href="#{name}">{name}</a>' for name in catalogues)
    sections = [f"{_HEAD}<style>{_STYLE}</style><h1>Pictures of all pages</h1><p>{links}</p>"]
    for name, pages in catalogues.items():
        sections.append(f'<h2 id="{name}">{name}: {len(pages)} pages</h2>')
        sections += [_section(name, pictured) for pictured in pages]
    index = folder / "index.html"
    index.write_text("\n".join(sections))
    return index


def _section(catalogue: str, pictured: PicturedPage) -> str:
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in pictured.remarks)
    pictures = "".join(
        f'<a href="{place}"><img src="{place}" alt="{view}" loading="lazy"></a>'
        for view, file in pictured.pictures.items()
        for place in [f"{catalogue}/{quote(file)}"]
    )
    listed = f"<ul>{remarks}</ul>" if remarks else ""
    return f"<section><h3>{escape(pictured.address)}</h3>{listed}{pictures}</section>"
