"""Opens a page in a headless browser, light and dark, with and without scripts, and for print, over the
DevTools protocol on two pipes. Prints one JSON object for each of the five views: messages of the console,
requested addresses, the text of the cursor, and statistics of the pixels.

Usage: browse.py BROWSER FILE FOLDER
       browse.py BROWSER FILE FOLDER layout
       browse.py BROWSER FILE FOLDER save

With `layout` the page is opened at two widths, light and dark, with all details open. Prints one JSON object for
each: the width of the page, elements that are wider than it, and cells of tables with too little room for a
line.

With `save` the links below the first chart of the dark page are followed. Prints one JSON object: the names of the
saved files, the text of the SVG, and the size, the corner and the number of colours of the PNG.
"""

import base64
import json
import os
import struct
import subprocess
import sys
import threading
import time
import zlib

WIDTH, HEIGHT, SCALE = 1100, 2600, 0.25


class Browser:
    """A browser that is spoken to by JSON between NULs (--remote-debugging-pipe)."""

    def __init__(self, program, folder):
        to_browser, self.write_fd = os.pipe()
        self.read_fd, from_browser = os.pipe()
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-dev-shm-usage", "--disable-extensions", "--remote-debugging-pipe",
                 # Nothing of its own over the network: on a machine without one each attempt is waited for.
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--disable-quic", "--no-default-browser-check", "--disable-default-apps",
                 "--user-data-dir=" + folder, "about:blank"]

        def pipes():
            # The protocol's numbers; above them, so that neither overwrites the other.
            read, write = os.dup2(to_browser, 60), os.dup2(from_browser, 61)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(words, preexec_fn=pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.events = b"", 0, []
        # A browser that says nothing is a failure and not a test that never ends. The bound is wide: two
        # processors may be at sixteen other tests.
        self.clock = threading.Timer(300, self.process.kill)
        self.clock.start()

    def message(self):
        while b"\0" not in self.rest:
            part = os.read(self.read_fd, 1 << 20)
            if not part:
                raise SystemExit(f"the browser has ended (code {self.process.wait()})")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if session:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method, session):
        """Reads events until the session has had one of this name."""
        while not any(event["method"] == method and event.get("sessionId") == session
                      for event in self.events):
            self.events.append(self.message())

    def end(self):
        self.clock.cancel()
        self.process.kill()
        self.process.wait()


def pixels(png):
    """Rows of bytes of an eight-bit PNG without interlacing, and the bytes of a pixel."""
    at, data, width, colour = 8, b"", 0, 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, _, _, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    each = {2: 3, 6: 4}[colour]
    raw, line = zlib.decompress(data), width * each
    rows, above = [], bytearray(line)
    for start in range(0, len(raw), line + 1):
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + line])
        for i in range(line):
            left = row[i - each] if i >= each else 0
            corner = above[i - each] if i >= each else 0
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + above[i] & 255
            elif kind == 3:
                row[i] = row[i] + (left + above[i]) // 2 & 255
            elif kind == 4:
                guess = left + above[i] - corner
                near = min((abs(guess - left), 0, left), (abs(guess - above[i]), 1, above[i]),
                           (abs(guess - corner), 2, corner))
                row[i] = row[i] + near[2] & 255
        rows.append(row)
        above = row
    return rows, each


def look(browser, url, dark, scripts, printed, keep):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(method, **params):
        return browser.call(method, session, **params)

    for domain in ("Page", "Runtime", "Log", "Network"):
        call(domain + ".enable")
    call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1,
         mobile=False)
    scheme = "dark" if dark else "light"
    call("Emulation.setEmulatedMedia", media="print" if printed else "screen",
         features=[{"name": "prefers-color-scheme", "value": scheme}])
    call("Emulation.setScriptExecutionDisabled", value=not scripts)
    browser.events.clear()
    call("Page.navigate", url=url)
    browser.wait("Page.loadEventFired", session)
    cursor, closed, shown = "", None, None
    if printed:
        # What a browser does before it prints.
        closed, shown = call("Runtime.evaluate", returnByValue=True, expression="""(function () {
            window.dispatchEvent(new Event('beforeprint'));
            var hidden = document.querySelectorAll('nav, output');
            return [document.querySelectorAll('details:not([open])').length,
                    Array.from(hidden).filter(e => getComputedStyle(e).display !== 'none').length];
        }())""")["result"]["value"]
    elif scripts:
        # Over the middle of the first picture of load.
        found = call("Runtime.evaluate", returnByValue=True, expression="""(function () {
            var svg = document.querySelector('figure[data-cursor] svg.large');
            svg.scrollIntoView({ block: 'center' });
            var box = svg.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }())""")["result"]["value"]
        # The first movement may meet the layout from before the page was scrolled.
        for attempt in range(50):
            call("Input.dispatchMouseEvent", type="mouseMoved", x=found[0] + attempt % 2, y=found[1])
            cursor = call("Runtime.evaluate", returnByValue=True, expression="""
                document.querySelector('figure[data-cursor] output').textContent""")["result"]["value"]
            if cursor:
                break
            time.sleep(0.1)
        call("Runtime.evaluate", expression="window.scrollTo(0, 0)")
    shot = call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": SCALE})
    picture = base64.b64decode(shot["data"])
    with open(keep, "wb") as file:
        file.write(picture)
    rows, each = pixels(picture)
    colours, light = {}, 0
    for row in rows:
        for i in range(0, len(row), each):
            colour = bytes(row[i:i + 3])
            colours[colour] = colours.get(colour, 0) + 1
            light += sum(colour)
    count = sum(colours.values())
    said, asked = [], []
    for event in browser.events:
        params = event.get("params", {})
        if event.get("sessionId") != session:
            continue
        if event["method"] == "Runtime.consoleAPICalled":
            said.append(json.dumps(params["args"]))
        elif event["method"] == "Runtime.exceptionThrown":
            said.append(params["exceptionDetails"]["text"])
        elif event["method"] == "Log.entryAdded":
            said.append(params["entry"]["text"])
        elif event["method"] == "Network.requestWillBeSent":
            asked.append(params["request"]["url"])
    browser.call("Target.closeTarget", targetId=target)
    return {"dark": dark, "scripts": scripts, "print": printed, "closed": closed, "shown": shown, "console": said, "asked": asked, "cursor": cursor,
            "colours": len(colours), "commonest": max(colours.values()) / count,
            "light": light / count / 3 / 255}


# Elements beyond the page, and cells whose lines hold fewer than four full-width or six Latin characters. Of a
# chart only its own box counts: letters may reach over its edge by a part of a pixel.
LAYOUT = """(function () {
    document.querySelectorAll('details').forEach(function (one) { one.open = true; });
    var width = document.documentElement.clientWidth, wide = [], narrow = [];
    function name(one) {
        return one.tagName + '.' + (one.getAttribute('class') || '') + ' ' + one.textContent.trim().slice(0, 60);
    }
    document.querySelectorAll('body *').forEach(function (one) {
        if (one.closest('svg') && one.tagName !== 'svg' || one.tagName === 'SCRIPT') { return; }
        var box = one.getBoundingClientRect();
        if (box.width > 0 && (box.right > width + 1 || box.left < -1)) { wide.push(name(one)); }
    });
    document.querySelectorAll('th, td').forEach(function (cell) {
        if (cell.scrollWidth > cell.clientWidth + 1) { narrow.push('cut: ' + name(cell)); }
        var text = document.createRange();
        text.selectNodeContents(cell);
        var lines = Array.from(text.getClientRects()).filter(function (box) { return box.width > 0; });
        var tops = new Set(lines.map(function (box) { return Math.round(box.top / 8); }));
        if (tops.size < 2 || cell.getBoundingClientRect().width === 0) { return; }
        var style = getComputedStyle(cell), size = parseFloat(style.fontSize);
        var room = cell.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        var isWide = /[\\u3040-\\u9fff]/.test(cell.textContent);
        if (room < size * (isWide ? 4 : 3.1)) { narrow.push(name(cell) + ' ' + room); }
    });
    return { width: width, scroll: document.documentElement.scrollWidth, wide: wide, narrow: narrow,
             cells: document.querySelectorAll('td').length,
             charts: Array.from(document.querySelectorAll('svg')).filter(function (one) {
                 return one.getBoundingClientRect().width > 0;
             }).map(function (one) { return one.getBoundingClientRect().width / one.viewBox.baseVal.width; }) };
}())"""


def layout(browser, url, width, dark, keep):
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime"):
        browser.call(domain + ".enable", session)
    browser.call("Emulation.setDeviceMetricsOverride", session, width=width, height=HEIGHT,
                 deviceScaleFactor=1, mobile=width < 600)
    scheme = "dark" if dark else "light"
    browser.call("Emulation.setEmulatedMedia", session, media="screen",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    browser.call("Page.navigate", session, url=url)
    browser.wait("Page.loadEventFired", session)
    found = browser.call("Runtime.evaluate", session, returnByValue=True, expression=LAYOUT)
    shot = browser.call("Page.captureScreenshot", session, format="png", captureBeyondViewport=True)
    with open(keep, "wb") as file:
        file.write(base64.b64decode(shot["data"]))
    browser.call("Target.closeTarget", targetId=target)
    return dict(found["result"]["value"], dark=dark)


def save(browser, url, folder):
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        browser.call(domain + ".enable", session)
    browser.call("Emulation.setEmulatedMedia", session, media="screen",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.events.clear()
    browser.call("Page.navigate", session, url=url)
    browser.wait("Page.loadEventFired", session)
    names = []
    for at in range(2):
        name = browser.call("Runtime.evaluate", session, returnByValue=True, userGesture=True, expression=f"""
            (function () {{
                var link = document.querySelectorAll('figure .save a')[{at}];
                link.click();
                return link.download;
            }}())""")["result"]["value"]
        path = os.path.join(folder, name)
        for _ in range(600):
            if os.path.exists(path) and os.path.getsize(path) > 0:
                break
            time.sleep(0.1)
        names.append(name)
    said = [event["params"] for event in browser.events
            if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    with open(os.path.join(folder, names[0]), encoding="utf-8") as file:
        svg = file.read()
    with open(os.path.join(folder, names[1]), "rb") as file:
        png = file.read()
    rows, each = pixels(png)
    colours = {bytes(row[i:i + 3]) for row in rows for i in range(0, len(row), each)}
    return {"names": names, "console": said, "svg": svg, "width": len(rows[0]) // each, "height": len(rows),
            "corner": list(rows[0][:3]), "colours": len(colours)}


def main():
    program, page, folder = sys.argv[1:4]
    browser = Browser(program, os.path.join(folder, "profile"))
    try:
        if sys.argv[4:] == ["save"]:
            print(json.dumps(save(browser, "file://" + page, folder)))
            return
        if sys.argv[4:] == ["layout"]:
            for width in (1280, 390):
                for dark in (False, True):
                    keep = os.path.join(folder, f"{width}-{'dark' if dark else 'light'}.png")
                    print(json.dumps(layout(browser, "file://" + page, width, dark, keep)), flush=True)
            return
        ways = [(dark, scripts, False) for dark in (False, True) for scripts in (True, False)]
        # On paper a dark page is light.
        for dark, scripts, printed in ways + [(True, True, True)]:
            name = f"{'dark' if dark else 'light'}-{'scripts' if scripts else 'plain'}"
            keep = os.path.join(folder, name + ("-print.png" if printed else ".png"))
            print(json.dumps(look(browser, "file://" + page, dark, scripts, printed, keep)), flush=True)
    finally:
        browser.end()


main()
