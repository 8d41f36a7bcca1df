"""The preview goes on after an error, and Ctrl-C ends a build."""

import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
from html import unescape
from shutil import copytree

import pytest

from anatomy.site.preview import Preview
from tests.fakes import synthetic
from tests.fakes.sites import CHECKOUT, Project, block
from tests.record.processes.test_isolation import gone


@pytest.fixture
def project(tmp_path) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, synthetic.shared())


def test_a_preview_keeps_the_last_good_pages_and_says_on_them_what_is_wrong(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    preview = Preview(site)
    sent = []

    def app(environ, start):
        body = (site / environ["PATH_INFO"]).read_bytes()
        kind = "text/html" if environ["PATH_INFO"].endswith("html") else "text/css"
        start("200 OK", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    def asked(path: str) -> bytes:
        body = b"".join(preview.around(app)({"PATH_INFO": path}, lambda *given: sent.append(given)))
        assert dict(sent[-1][1])["Content-Length"] == str(len(body))
        return body

    def good():
        (site / "a.html").write_text("<body class='x'>good</body>")
        (site / "a.css").write_text("<body>")

    def bad():
        (site / "a.html").write_text("half")
        raise ValueError("a.md:3: <b>")

    assert preview.build(good) == "" and asked("a.html") == b"<body class='x'>good</body>"
    assert "a.md:3: <b>" in preview.build(bad)
    html = asked("a.html").decode()
    assert "good</body>" in html and "a.md:3: &lt;b&gt;" in html and 'role="alert"' in html
    assert asked("a.css") == b"<body>"
    with pytest.raises(KeyboardInterrupt):
        preview.build(lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert (site / "a.html").is_file()
    assert preview.build(good) == "" and asked("a.html") == b"<body class='x'>good</body>"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


@pytest.mark.parametrize("options", [[], ["--dirty"]], ids=["whole", "what was edited"])
def test_a_preview_answers_after_an_error_with_the_last_good_pages(project, options):
    project.write(index="# Home\n\nalpha\n", other="# Other\n\n[home](index.md)\n")
    port = free_port()
    command = [*project.command()[:-1], "serve", *options, "--dev-addr", f"127.0.0.1:{port}"]
    log = project.folder / "log"
    with log.open("w") as told:
        preview = subprocess.Popen(
            command, cwd=project.folder, env=project.environment(), stdout=told, stderr=told
        )
    page = project.folder / "docs" / "index.md"
    try:
        until(lambda: "Serving on" in log.read_text(), preview)
        assert "Reading what 2 pages show" in log.read_text()
        page.write_text("# Home\n\nbeta [[claim:nope]]\n")
        until(lambda: "The last good pages are shown" in log.read_text(), preview)
        html = asked(port)
        assert "alpha" in html and "beta" not in html
        assert "index.md:3: [[claim:nope]]: There is no claim" in html
        assert "index.md:3: [[claim:nope]]: There is no claim" in log.read_text()
        page.write_text("# Home\n\ngamma\n")
        until(lambda: "gamma" in asked(port), preview)
        assert 'role="alert"' not in asked(port)
        other = asked(port, "other/")
        assert "Other" in other and "Renamed" not in other and 'role="alert"' not in other
        settings = project.folder / "mkdocs.yml"  # beside the pages, so all of them are new
        settings.write_text(settings.read_text() + "site_name: Renamed\n")
        until(lambda: "Renamed" in asked(port, "other/"), preview)
        # Such an edit counts for all pages also where the first build after it fails.
        page.write_text("# Home\n\n[[claim:nope]]\n")
        until(lambda: 'role="alert"' in asked(port), preview)
        settings.write_text(settings.read_text().replace("Renamed", "Once more"))
        until(lambda: log.read_text().count("The last good pages are shown") >= 3, preview)
        page.write_text("# Home\n\ndelta\n")
        until(lambda: "delta" in asked(port), preview)
        assert "Once more" in asked(port, "other/")
    finally:
        preview.send_signal(signal.SIGINT)
        preview.wait(120)


def until(true, process) -> None:
    """Wait for it, as long as a loaded machine may need."""
    deadline = time.monotonic() + 120
    while not true():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def asked(port: int, page: str = "") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
        return unescape(answer.read().decode())


def test_ctrl_c_ends_a_build_in_a_block(project):
    project.write(index="# T\n\n" + block("open('begun', 'w').close()\nwhile True: pass"))
    build = subprocess.Popen(
        project.command(),
        cwd=project.folder,
        env=project.environment(),
        stderr=subprocess.DEVNULL,
        # A shell's background jobs ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until((project.folder / "begun").exists, build)
        build.send_signal(signal.SIGINT)
        assert build.wait(120) != 0
    finally:
        build.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere blocks run in the build's process")
def test_no_block_outlives_a_build_that_is_killed(project):
    code = "import os\nopen('begun', 'w').write(str(os.getpid()))\nsum(range(10**12))"
    project.write(index="# T\n\n" + block(code))
    build = subprocess.Popen(
        project.command(), cwd=project.folder, env=project.environment(), stderr=subprocess.DEVNULL
    )
    begun = project.folder / "begun"
    until(lambda: begun.exists() and begun.read_text(), build)
    worker = int(begun.read_text())
    assert worker != build.pid and not gone(worker, within_s=0.1)
    build.kill()
    build.wait()
    assert gone(worker)


def test_a_preview_follows_the_code_of_the_package(project):
    """`mkdocs serve` reads the package anew before each build; here an edited copy of it."""
    code = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        sys.dont_write_bytecode = True
        sys.path.insert(0, "copy")
        from anatomy.table import units
        from anatomy.site import building
        assert units.byte_count(1) == "1 B"
        path = Path("copy/anatomy/table/units.py")
        path.write_text(path.read_text() + "\\n\\ndef byte_count(n):\\n    return 'edited'\\n")
        building.forget_modules()
        from anatomy.table import units
        print(units.byte_count(1))
        """
    )
    copytree(CHECKOUT / "anatomy", project.folder / "copy" / "anatomy")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.folder, capture_output=True, text=True, timeout=99
    )
    assert done.stdout == "edited\n", done.stderr
