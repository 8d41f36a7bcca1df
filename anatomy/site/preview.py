"""A preview that goes on after an error: the last good pages, with the error on each of them.

MkDocs' own server answers no request from a failed build until the next good one.
"""

import re
import shutil
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from wsgiref.headers import Headers

_BODY = re.compile(rb"<body[^<>]*>")
_STYLE = (
    "position:fixed;inset:auto 0 0 0;z-index:99;max-height:50vh;overflow:auto;margin:0;"
    "padding:1em;background:#7f1d1d;color:#fff;font:14px/1.4 monospace;white-space:pre-wrap"
)


@dataclass
class Preview:
    """The preview of one site, which lies in the folder `site`."""

    site: Path
    whole: bool = True  # whether a build makes the whole site anew, not only what was edited
    wrong: str = ""  # with the sources as they are; empty where they build

    def build(self, build: Callable[[], None]) -> str:
        """Build it; where that fails, keep what was there. Returns what was wrong, or nothing."""
        good = self.site.with_name(f"{self.site.name}.good")
        if self.whole:
            self.site.rename(good)
            self.site.mkdir()
        try:
            build()
            self.wrong = ""
        except BaseException as error:
            if self.whole:
                shutil.rmtree(self.site, ignore_errors=True)
                good.rename(self.site)
            if not isinstance(error, Exception):  # such as Ctrl-C
                raise
            # What MkDocs ends a build with says less than what it was told in the terminal.
            told = isinstance(error, SystemExit)
            self.wrong = str(error.__context__ or error) if told else traceback.format_exc()
        finally:
            shutil.rmtree(good, ignore_errors=True)
        return self.wrong

    def around(self, app: Callable) -> Callable:
        """A WSGI application that answers as `app` does, and says on each page what is wrong."""

        def answer(environ: dict[str, Any], start: Callable) -> Iterable[bytes]:
            if not self.wrong:
                return app(environ, start)
            begun = []
            body = app(environ, lambda *given: begun.extend(given))
            status, headers = begun[0], Headers(begun[1])
            if (headers["Content-Type"] or "").startswith("text/html"):
                body = [self._marked(b"".join(body))]
                headers["Content-Length"] = str(len(body[0]))
            start(status, headers.items())
            return body

        return answer

    def _marked(self, html: bytes) -> bytes:
        told = f'<pre role="alert" style="{_STYLE}">{escape(self.wrong)}</pre>'.encode()
        return _BODY.sub(lambda found: found[0] + told, html, count=1)
