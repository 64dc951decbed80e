# SPDX-License-Identifier: Apache-2.0
"""A report as a tree, and what holds for every report."""
import html.parser
import re

VOID = {"meta", "link", "input", "br", "path", "rect", "circle", "line"}
ALLOWED = {
    "html", "head", "meta", "link", "title", "style", "body", "a", "header", "h1", "h2", "h3", "p", "span", "b", "code",
    "div", "nav", "main", "section", "i", "svg", "text", "rect", "path", "circle", "table", "thead", "tbody", "tr", "th",
    "td", "small", "br", "details", "summary", "label", "input", "dl", "dt", "dd", "footer", "script"}
SECTIONS = ["step", "stages", "schedule", "dominates", "layer", "time", "memory", "plans", "operators", "inputs"]


class Node:
    def __init__(self, tag, attrs):
        self.tag, self.attrs, self.children = tag, dict(attrs), []

    def all(self, tag=None, cls=None):
        for child in self.children:
            if isinstance(child, Node):
                if (tag is None or child.tag == tag) and (cls is None or cls in child.attrs.get("class", "").split()):
                    yield child
                yield from child.all(tag, cls)

    def text(self):
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def id(self, name):
        return next((n for n in self.all() if n.attrs.get("id") == name), None)


class Page(html.parser.HTMLParser):
    """Parses strictly: what is opened is closed, in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.root, self.faults = Node("", []), []
        self.open = [self.root]
        self.feed(text)
        self.close()
        if len(self.open) > 1:
            self.faults.append("not closed: " + self.open[-1].tag)

    def handle_starttag(self, tag, attrs):
        node = Node(tag, attrs)
        self.open[-1].children.append(node)
        if len(node.attrs) != len(attrs):
            self.faults.append("an attribute twice: " + self.get_starttag_text()[:80])
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.open[-1].children.append(Node(tag, attrs))

    def handle_endtag(self, tag):
        if len(self.open) > 1 and self.open[-1].tag == tag:
            self.open.pop()
        else:
            self.faults.append(f"closes {tag} inside {self.open[-1].tag}")

    def handle_data(self, data):
        self.open[-1].children.append(data)

    def handle_comment(self, data):
        self.faults.append("a comment")


def check(text):
    """The page, and faults that no report may have."""
    page = Page(text)
    faults, root = page.faults, page.root
    ids = [n.attrs["id"] for n in root.all() if "id" in n.attrs]
    if len(ids) != len(set(ids)):
        faults.append("an id twice")
    for n in root.all():
        if n.tag not in ALLOWED:
            faults.append("an element that reports have not: " + n.tag)
        for key, value in n.attrs.items():
            if key.startswith("on"):
                faults.append(f"a handler {key} of {n.tag}")
            if key in ("src", "action", "srcset", "background", "data", "poster") or \
                    (key in ("href", "xlink:href") and not re.fullmatch(r"#[a-z-]+|data:,", value)):
                faults.append(f"refers to {value!r}")
            if key == "href" and value.startswith("#") and value[1:] not in ids:
                faults.append(f"no such place: {value}")
            if key == "style" and re.search(r"url|expression|@", value):
                faults.append(f"style {value!r}")
    if len(list(root.all("script"))) != 1 or len(list(root.all("style"))) != 1:
        faults.append("not one script and one style")
    for n in list(root.all("script")) + list(root.all("style")):
        if re.search(r"https?:|//[a-z]|@import|url\(|fetch|XMLHttp|eval", n.text()):
            faults.append("an external URL in " + n.tag)
    for name in SECTIONS:
        section = root.id(name)
        if section is None or section.tag != "section" or len(section.text()) < 20:
            faults.append("no section " + name)
    if len(text.encode()) >= 2_000_000:
        faults.append(f"{len(text.encode())} bytes")
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text):
        faults.append("control characters")
    return root, faults
