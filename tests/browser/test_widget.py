"""The page as a widget, in real JupyterLab: moved there it is heard in Python, and set in Python it
moves there.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("jupyterlab")
pytest.importorskip("anywidget")
nbformat = pytest.importorskip("nbformat")
#: A busy machine starts a server, a page and a kernel in a minute or two.
PATIENCE = 120
CELLS = [
    "import tailpath as tp\n"
    "from tailpath.show.page.widget import PageWidget\n"
    "text = tp.page(tp.domains.river(rows=5, columns=5), alphas=(0.5, 0.1, 0.01))\n"
    "shown = PageWidget(html=text.html)\n"
    "shown",
    "print('heard', shown.alpha, shown.policy)",
    "shown.alpha = 0.01",
]


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab of its own, with a notebook in it."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / "page.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = (
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--IdentityProvider.token=",
        "--allow-root",
        f"--notebook-dir={tmp_path}",
    )
    homes = {
        name: str(tmp_path / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    command = [sys.executable, "-m", "jupyterlab", *options, "--LabApp.news_url=None"]
    server = subprocess.Popen(
        command, env=os.environ | homes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield f"http://127.0.0.1:{port}/lab/tree/page.ipynb"
    server.terminate()
    server.wait(timeout=60)


def until(found):
    """What a function finds at last."""
    from selenium.common.exceptions import WebDriverException

    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if result := found():
                return result
        except (WebDriverException, OSError):
            pass
        time.sleep(0.5)
    raise AssertionError("nothing came")


def test_the_widget_and_python_hear_each_other(browser, lab):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def cells():
        return browser.find_elements("css selector", ".jp-Notebook .jp-Cell .cm-content")

    def run(number):
        cells()[number].click()
        ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(
            Keys.SHIFT
        ).perform()

    def moved(value):
        return browser.execute_script("return document.getElementById('alpha').value") == value

    browser.set_window_size(1400, 1400)
    until(lambda: urllib.request.urlopen(lab, timeout=10))
    browser.get(lab)
    until(lambda: len(cells()) == len(CELLS))
    until(lambda: browser.find_element("css selector", '[data-status="idle"]'))

    def started():
        """Keys that are pressed before the notebook listens are lost."""
        run(0)
        time.sleep(3)
        prompt = browser.find_element("css selector", ".jp-Notebook .jp-InputPrompt").text
        return prompt.strip("[ ]:\xa0")

    until(started)
    frame = until(lambda: browser.find_element("css selector", ".jp-OutputArea iframe"))
    browser.switch_to.frame(frame)
    until(lambda: moved("1"))
    browser.find_element("id", "alpha").send_keys(Keys.HOME)
    assert moved("0")
    browser.switch_to.default_content()

    def heard():
        run(1)
        time.sleep(1)
        return "heard 0.5" in browser.find_element("css selector", ".jp-Notebook").text

    until(heard)
    run(2)
    browser.switch_to.frame(frame)
    until(lambda: moved("2"))
    browser.switch_to.default_content()
