"""nbgrader's formgrader on a class of ours: a written answer is read, marked, and stays marked."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

from autograde.doctor import chromium_path
from autograde.grade import grade_chapter
from autograde.record import gradebook, scores

SLUG = "90-example"
TOKEN = "of-this-test-alone"
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"


@pytest.fixture
def folder(class_of, filled, course, engine):
    folder = class_of(ada=filled(why="Other <b>axes</b>."))
    grade_chapter(folder, SLUG, course=course, engine=engine)
    return folder


@pytest.fixture
def server(folder, command, tmp_path):
    """A Jupyter server with nbgrader's extension, in the class folder as a teacher starts it."""
    assert command("nbgrader-config", "--class-dir", folder.root) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--allow-root", "--no-browser", f"--port={port}", f"--IdentityProvider.token={TOKEN}"]
    home = {"HOME": str(tmp_path / "home"), "JUPYTER_CONFIG_DIR": str(tmp_path / "none")}
    log = (tmp_path / "server.log").open("w+")
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", *words, "--ip=127.0.0.1"],
        cwd=folder.root,
        env=os.environ | home,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 60
        while not _answers(url):
            assert process.poll() is None, _said(log)
            assert time.monotonic() < until, _said(log)
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def _answers(url):
    try:
        return urllib.request.urlopen(f"{url}/api", timeout=5).status == 200
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def _said(log):
    log.seek(0)
    return f"the Jupyter server did not start:\n{log.read()[-2000:]}"


@pytest.fixture
def page(server):
    browser_path = chromium_path()
    assert browser_path, "this test needs Chromium: install it, or set CHROMIUM=/path/to/chrome"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", OFFLINE]
        )
        page = browser.new_page()
        page.goto(f"{server}/login?token={TOKEN}")
        yield page
        browser.close()


def test_a_written_answer_is_marked_in_formgrader(
    page, server, folder, filled, class_of, course, engine, command
):
    # The list of submissions names nobody.
    page.goto(f"{server}/formgrader/gradebook/{SLUG}/{SLUG}")
    row = page.locator("tbody tr", has_text="Submission #1")
    expect(row).to_be_visible()
    expect(page.get_by_text("ada", exact=True)).to_be_hidden()

    # The submission shows the answer with what earns its points right above, and no name.
    with gradebook(folder) as book:
        submission = book.find_submission_notebook(SLUG, SLUG, "ada").id
    page.goto(f"{server}/formgrader/submissions/{submission}/")
    points, comment = page.locator('[id="90-why"]'), page.locator('[id="90-why-comment"]')
    expect(points).to_be_visible()
    assert re.search(
        r"Why is the mean of a row not the mean of a column\?\s+Student's answer",
        page.locator("#notebook-container").first.inner_text(),
    )
    expect(page.locator("a.name-shown")).to_be_hidden()
    expect(page.get_by_text("axes", exact=False)).to_have_count(1)
    assert page.locator("b", has_text="axes").count() == 0  # a tag of a learner's is text

    # Points and comment are saved as they are entered.
    for field, text in ((points, "1.5"), (comment, "Which axes?")):
        with page.expect_response(lambda answer: answer.request.method == "PUT") as saved:
            field.fill(text)
            field.blur()
        assert saved.value.ok

    # They are in the gradebook, on the learner's page and in the export, graded again or not.
    command("grade", "90", "--class-dir", folder.root)
    grade_chapter(folder, SLUG, course=course, engine=engine, again=True)
    score = scores(folder, SLUG)["ada"]["90-why"]
    assert (score.points, score.needs_manual_grade) == (1.5, False)
    assert score.comment == "Which axes?"
    assert command("feedback", "90", "--class-dir", folder.root) == 0
    assert "<pre>Which axes?</pre>" in folder.feedback("ada", SLUG).read_text()
    assert command("export", "90", "--class-dir", folder.root) == 0
    questions = folder.root / "export" / f"{SLUG}-questions.csv"
    assert '"ada","90-example","90-why","90-why",1.5,2.0,0' in questions.read_text()

    # Other work keeps the points, and asks for another look.
    class_of(ada=filled(why="The axes differ."))
    grade_chapter(folder, SLUG, course=course, engine=engine)
    score = scores(folder, SLUG)["ada"]["90-why"]
    assert (score.points, score.needs_manual_grade) == (1.5, True)
