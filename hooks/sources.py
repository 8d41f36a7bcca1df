"""What lies in the files of a project, before a page is drawn."""

from pathlib import Path

from markdown import Markdown
from mkdocs.utils.meta import get_data
from pymdownx.snippets import SnippetMissingError

_SNIPPETS = "pymdownx.snippets"


def stamps(config):
    """What tells whether a file that is watched, other than a page, was edited."""
    watched = [Path(config.config_file_path), *map(Path, config.watch)]
    files = [file for each in watched for file in (each, *each.rglob("*")) if file.is_file()]
    return {file: (file.stat().st_mtime_ns, file.stat().st_size) for file in files}


def body(source):
    """A page without its front matter, as MkDocs hands it on, and how many lines that took."""
    text, _ = get_data(source)
    return text, source[: source.rindex(text)].count("\n")


def missing(markdown, config):
    """Line and reason of each snippet that is not there, which Markdown would tell without both."""
    if _SNIPPETS not in config.markdown_extensions:
        return []
    reader = Markdown(extensions=[_SNIPPETS], extension_configs=config.mdx_configs)
    lines = markdown.split("\n")
    marked = [at for at, line in enumerate(lines, 1) if "--8<--" in line]

    def wrong(at, text):
        try:
            reader.preprocessors["snippet"].run(text)
        except SnippetMissingError as error:
            return [(at, f"{error}.")]
        return []

    single = [each for at in marked for each in wrong(at, [lines[at - 1]])]
    # Only the whole page tells of one that is named on lines of its own.
    return single or (wrong(marked[0], lines) if marked else [])
