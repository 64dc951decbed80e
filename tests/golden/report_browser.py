#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: report_browser.py PROGRAM SOURCE_ROOT [FOLDER]

Reports in Chromium, through chromedriver, at 400 and 1280 pixels, light and dark, and on paper: no text lies over another or runs
out of the page, nothing is on the console and nothing is fetched, what can be operated is reached by Tab, and the
search finds. With FOLDER, screenshots are left there.
"""
import base64
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

PROGRAM, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
SHOTS = pathlib.Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
ENV = {k: v for k, v in os.environ.items() if k != "RANK_TABLE_FILE"} | {
    "AUTOPAR_PLAN_MODELS": str(ROOT / "models")}
failed = 0

# Boxes of all texts that are shown: where two of them share more than a hair, or one leaves the page, it is a
# fault. What scrolls by itself is cut at its frame.
OVERLAPS = """
const faults = [], boxes = [], W = document.documentElement.clientWidth;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n; (n = walker.nextNode());) {
  const e = n.parentElement, text = n.textContent.trim();
  if (!text || e.closest('script,style,details:not([open]) > :not(summary)')) continue;
  const style = getComputedStyle(e);
  if (style.visibility === 'hidden' || style.display === 'none') continue;
  const range = document.createRange();
  range.selectNodeContents(n);
  const scroll = e.closest('.scroll'), frame = scroll && scroll.getBoundingClientRect();
  for (const box of range.getClientRects()) {
    const r = {left: box.left, right: box.right, top: box.top, bottom: box.bottom};
    if (scroll) {
      r.left = Math.max(r.left, frame.left);
      r.right = Math.min(r.right, frame.right);
    }
    if (r.right - r.left < 1 || r.bottom - r.top < 1 || r.right < 0) continue;
    if (!scroll && (r.right > W + 1 || r.left < -1)) faults.push('leaves the page: ' + text.slice(0, 60));
    boxes.push([r.left, r.top, r.right, r.bottom, text.slice(0, 60)]);
  }
}
boxes.sort((a, b) => a[1] - b[1]);
for (let i = 0; i < boxes.length; i++)
  for (let j = i + 1; j < boxes.length && boxes[j][1] < boxes[i][3]; j++) {
    const a = boxes[i], b = boxes[j];
    const w = Math.min(a[2], b[2]) - Math.max(a[0], b[0]), h = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
    if (w > 1.5 && h > 4.5) faults.push('"' + a[4] + '" lies over "' + b[4] + '"');
  }
if (document.documentElement.scrollWidth > W + 1) faults.push('the page scrolls sideways');
return faults.slice(0, 8);
"""


def fail(*what):
    global failed
    failed += 1
    print("FAILED:", *what)


def plan(name, *args):
    subprocess.run([PROGRAM, *args, "-q", "--plan-out", f"{name}.json"], check=True, env=ENV, stdin=subprocess.DEVNULL)
    subprocess.run([PROGRAM, "render", f"{name}.json", "--report", f"{name}.html", "-q"], check=True, env=ENV)
    return name


class Driver:
    """A session of chromedriver."""

    def __init__(self, width, dark):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder = tempfile.mkdtemp()
        self.process = subprocess.Popen(["chromedriver", f"--port={self.port}", "--silent"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage", f"--user-data-dir={self.folder}"]
        self.session = ""
        for _ in range(100):
            try:
                self.call("GET", "/status")
                break
            except OSError:
                time.sleep(0.1)
        self.session = "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "goog:chromeOptions": {"args": args}}}})["sessionId"]
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.cdp("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{self.session}{path}", data, method=method,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def cdp(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def script(self, text, *args):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(args)})

    def key(self, key):
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def shot(self, path):
        size = self.script("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        image = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size[0], "height": min(size[1], 15000), "scale": 1})
        path.write_bytes(base64.b64decode(image["data"]))

    def end(self):
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)


def look(driver, name, width, dark):
    where = f"{name} at {width}{' dark' if dark else ''}:"
    driver.call("POST", "/url", {"url": pathlib.Path(f"{name}.html").resolve().as_uri()})
    for fault in driver.script(OVERLAPS):
        fail(where, fault)
    if SHOTS:
        driver.shot(SHOTS / f"{name}-{width}{'-dark' if dark else ''}.png")
    driver.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    for fault in driver.script(OVERLAPS):
        fail(where, "opened:", fault)
    driver.script("document.querySelectorAll('details').forEach(d => d.open = false)")
    # text is dark on light or light on dark
    contrast = driver.script("""
        const lum = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => (x /= 255) <= .03928 ? x / 12.92 :
          ((x + .055) / 1.055) ** 2.4); return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
        const ground = e => { for (; e; e = e.parentElement) { const b = getComputedStyle(e).backgroundColor;
          if (!/, 0\\)$|transparent/.test(b)) return b; } return 'rgb(255,255,255)'; };
        const low = [];
        for (const e of document.querySelectorAll('h1,h2,p,td,th,summary,.chip,.kpi span,.key span,small,a,.mv,.bad')) {
          if (!e.textContent.trim() || !e.getClientRects().length) continue;
          const a = lum(getComputedStyle(e).color), b = lum(ground(e));
          const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
          if (ratio < 4.5) low.push(e.tagName + '.' + e.className + ' ' + ratio.toFixed(1));
        }
        return [...new Set(low)].slice(0, 6);""")
    for fault in contrast:
        fail(where, "contrast", fault)
    # by keyboard: links, parts that scroll, the search, what opens
    want = driver.script("return [...document.querySelectorAll('a,.scroll,summary,#find')].filter(e => "
                         "!e.closest('details:not([open]) > :not(summary)')).length")
    driver.script("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen = []
    for _ in range(want + 3):
        driver.key("\ue004")
        seen.append(driver.script("const e = document.activeElement; e.dataset.at = e.dataset.at || Math.random(); return "
                                  "e === document.body ? '' : e.dataset.at"))
    if len({s for s in seen if s}) < want:
        fail(where, "by Tab", len({s for s in seen if s}), "of", want, "are reached")
    # the search
    rows = driver.script("""
        const input = document.getElementById('find'); input.value = 'matmul'; input.dispatchEvent(new Event('input'));
        const rows = [...document.querySelectorAll('#all tbody tr')];
        return [rows.filter(r => !r.hidden).length, rows.filter(r => /matmul/i.test(r.textContent)).length,
          document.getElementById('all').open];""")
    if rows[0] != rows[1] or not rows[2]:
        fail(where, "the search finds", rows)
    for entry in driver.call("POST", "/se/log", {"type": "browser"}):
        fail(where, "console:", entry["message"])
    for entry in driver.call("POST", "/se/log", {"type": "performance"}):
        message = json.loads(entry["message"])["message"]
        url = message["params"].get("request", {}).get("url", "")
        if message["method"] == "Network.requestWillBeSent" and not url.startswith(("file:", "data:", "chrome:")):
            fail(where, "fetches", url)


def on_paper(driver, name):
    """All of it has room between the margins of A4."""
    driver.cdp("Emulation.setEmulatedMedia", media="print")
    driver.call("POST", "/url", {"url": pathlib.Path(f"{name}.html").resolve().as_uri()})
    driver.script("document.querySelectorAll('details').forEach(d => d.open = true)")
    for fault in driver.script(OVERLAPS):
        fail(name, "on paper:", fault)


def odd():
    """A network whose names are from right to left, made of combining characters, empty, long without a blank."""
    names = ["\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627", "e" + "\u0301" * 40,
             "Z\u0351\u036b\u0343" * 20, "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\u202eevil\u202c", "W" * 300,
             "\u4e2d" * 120, ""]
    graph = json.loads((ROOT / "models" / "multiple_mix.json").read_text())
    graph.pop("cells", None)
    graph["name"] = names[0]
    for i, node in enumerate(graph["operators"]):
        node["name"], node["cell"] = f"{names[i % len(names)]}{i}", names[i // 3 % len(names)]
    pathlib.Path("odd.graph.json").write_text(json.dumps(graph))
    return plan("odd", "search", "odd.graph.json", "--device-num", "8", "--chip", "ascend910b")


def main():
    names = [
        odd(),
        plan("one", "search", "gpt3_1.3b", "--device-num", "1", "--chip", "h200-141", "--batch", "8"),
        plan("stages", "evaluate", "gpt3_175b", "--device-num", "512", "--chip", "h100-80", "--executor", "megatron",
             "--micro-batches", "128", "--hybrid", "dp=1,tp=8,pp=64,sp=1"),
        plan("segments", "evaluate", "gpt3_175b", "--device-num", "48", "--chip", "h100-80", "--executor", "megatron",
             "--micro-batches", "96", "--hybrid", "dp=1,tp=8,pp=6,sp=1", "--pipeline-segments", "16"),
        plan("mlp", "search", "multiple_mix", "--device-num", "8", "--chip", "ascend910b"),
        plan("resnet", "search", "resnet50", "--device-num", "8", "--chip", "ascend910b"),
        plan("gpt13", "search", "gpt3_13b", "--device-num", "64", "--chip", "ascend910b", "--micro-batches", "8",
             "--enable-parallel-optimizer"),
        plan("llama", "evaluate", "llama2_70b", "--device-num", "256", "--chip", "h100-80", "--executor", "megatron",
             "--micro-batches", "64", "--recompute", "selective", "--hybrid", "dp=4,tp=8,pp=8,sp=1",
             "--enable-parallel-optimizer"),
        plan("mixtral", "search", "mixtral_8x7b", "--device-num", "64", "--chip", "h200-141", "--micro-batches", "32",
             "--enable-parallel-optimizer"),
        plan("planned", "plan", "gpt3_1.3b", "--device-num", "16", "--chip", "a100-80", "--executor", "megatron"),
    ]
    subprocess.run([PROGRAM, "search", "gpt3_13b", "--device-num", "64", "--chip", "ascend910b", "--micro-batches", "8",
                    "--hybrid", "dp=8,tp=8", "--enable-parallel-optimizer", "-q", "--plan-out", "old.json"], check=True, env=ENV)
    subprocess.run([PROGRAM, "render", "gpt13.json", "--against", "old.json", "--report", "both.html", "-q"], check=True,
                   env=ENV)
    for width, dark in ((1280, False), (400, False), (1280, True)):
        driver = Driver(width, dark)
        try:
            for name in names + ["both"]:
                look(driver, name, width, dark)
        finally:
            driver.end()
    driver = Driver(718, False)
    try:
        for name in names + ["both"]:
            on_paper(driver, name)
    finally:
        driver.end()


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    main()
    os.chdir("/")
print("failed" if failed else "reports in a browser: ok")
sys.exit(bool(failed))
