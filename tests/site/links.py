"""Links of a built site that lead nowhere in it; `python -m tests.site.links SITE` prints them.

MkDocs looks at the links of a page's Markdown. These are the links of the page as a reader gets it,
with those that blocks, tables and templates have written.
"""

import re
import sys
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

LINK = re.compile(r"""<[^<>]*?\s(?:href|src)=["']([^"']*)""")
ID = re.compile(r"""\s(?:id|name)=["']([^"']+)""")


def broken(site: Path) -> list[str]:
    """One sentence for each link that leads nowhere, with its page; other hosts are not asked."""

    @cache
    def ids(file: Path) -> set[str]:
        return {unescape(each) for each in ID.findall(file.read_text(encoding="utf-8"))}

    found = []
    for page in sorted(site.rglob("*.html")):
        place = page.relative_to(site).as_posix()
        for link in dict.fromkeys(LINK.findall(page.read_text(encoding="utf-8"))):
            parts = urlsplit(unescape(link))
            if parts.scheme or parts.netloc:
                continue
            path = unquote(urljoin(f"/{place}", parts.path)).lstrip("/") if parts.path else place
            file = site / path
            file = file / "index.html" if file.is_dir() else file
            anchor = unquote(parts.fragment) if file.suffix == ".html" else ""
            if not file.is_file():
                found.append(f"{place}: {link} leads to no file of the site.")
            elif anchor and anchor not in ids(file):
                found.append(f"{place}: {link} leads to no place of that name on its page.")
    return found


if __name__ == "__main__":
    wrong = broken(Path(sys.argv[1]))
    print("\n".join(wrong) or "Every link of the site leads somewhere.")
    sys.exit(bool(wrong))
