#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the source is laid out.

usage: measure.py ROOT            a table of figures, then the circles of calls
       measure.py ROOT --circles  the circles of calls, a line each: files in the order of their names

Read as text: a function is defined where its signature begins a line and a brace follows in the first column;
a file calls another where it names a global function that the other defines.
"""
import bisect
import collections
import os
import re
import sys

COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DEFINITION = re.compile(r'^((?:[A-Za-z_][^\n;={}#]*\n?)(?:[ \t][^\n;{}]*\n)*)\{\n(.*?)^\}', re.S | re.M)
NAME = re.compile(r'([A-Za-z_]\w*)\s*\(')
WORD = re.compile(r'[A-Za-z_]\w*')


def bare(text):
    """The text without comments and the contents of strings; lines stay."""
    return COMMENT_OR_STRING.sub(lambda m: '\n' * m.group().count('\n') if m.group()[0] == '/' else '""', text)


class Source:
    """A .c file: its functions (name, is static, lines), the words in it and how often."""

    def __init__(self, path, text):
        self.path = path
        self.lines = text.count('\n')
        self.text = bare(text)
        self.words = collections.Counter(WORD.findall(self.text))
        self.functions = []
        for m in DEFINITION.finditer(self.text):
            name = NAME.search(m.group(1))
            if name and not m.group(1).startswith(('struct {', 'enum', 'union {', 'typedef')):
                self.functions.append((name.group(1), bool(re.match(r'(?:\w+\s+)*?static\b', m.group(1))),
                                       m.group().count('\n') + 1, m.start()))

    def single_callers(self):
        """Of its static functions, how many there are and how many are named by just one other function."""
        statics = [f[0] for f in self.functions if f[1]]
        starts = [f[3] for f in self.functions]
        users = {s: set() for s in statics}
        for m in WORD.finditer(self.text):
            if m.group() in users:
                at = bisect.bisect(starts, m.start()) - 1
                inside = at >= 0 and self.functions[at][0] != m.group()
                if inside or at < 0:
                    users[m.group()].add(at)
        return len(statics), sum(len(u - {-1}) == 1 for u in users.values())


def tree(root, folders, suffixes):
    for folder in folders:
        for at, names, files in os.walk(os.path.join(root, folder)):
            names.sort()
            for name in sorted(files):
                if name.endswith(suffixes):
                    yield os.path.relpath(os.path.join(at, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as f:
        return f.read()


def call_graph(sources):
    """path -> set of the paths that it calls."""
    home = {name: s.path for s in sources for name, static, _, _ in s.functions if not static}
    return {s.path: {home[w] for w in s.words if w in home} - {s.path} for s in sources}


def circles(graph):
    """Strongly connected components of two files and more (Tarjan), sorted."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(graph[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for v in sorted(graph):
        if v not in index:
            visit(v)
    return sorted(found)


def spread(values):
    v = sorted(values)
    return '%d / %d / %d' % (v[len(v) // 2], v[len(v) * 9 // 10], v[-1])


def table(root):
    c_files = list(tree(root, ['src', 'include', 'tests', 'tools', 'bench'], ('.c', '.h')))
    sources = [Source(p, read(root, p)) for p in tree(root, ['src'], ('.c',))]
    headers = list(tree(root, ['src'], ('.h',)))
    counted = [p for p in tree(root, ['src', 'include', 'tools'],
                               ('.c', '.h', '.def', '.sh', '.py', '.build', '.awk', '.proto'))]
    counted = [p for p in counted if p != 'include/autopar/autopar.h']
    texts = [read(root, p) for p in counted]
    functions = [f for s in sources for f in s.functions]
    statics = [s.single_callers() for s in sources]
    src_lines = sum(s.lines for s in sources) + sum(read(root, p).count('\n') for p in headers)
    rooms = collections.Counter()
    for p in [s.path for s in sources] + headers:
        rooms[p.split('/')[1]] += read(root, p).count('\n')
    own = sum(s.path[:-2] + '.h' in headers for s in sources)
    circle = circles(call_graph(sources))
    biggest, size = rooms.most_common(1)[0]
    yield 'C files, lines', '%d, %d' % (len(c_files), sum(read(root, p).count('\n') for p in c_files))
    yield 'of src: .c, .h, lines', '%d, %d, %d' % (len(sources), len(headers), src_lines)
    yield 'src, include, tools: lines, bytes', '%d, %d' % (
        sum(t.count('\n') for t in texts), sum(len(t.encode()) for t in texts))
    yield 'lines of a .c of src: median / p90 / max', spread([s.lines for s in sources])
    yield 'lines of a function: median / p90 / max', spread([f[2] for f in functions])
    yield 'functions in 1,000 lines of .c', '%d' % round(
        1000 * len(functions) / sum(s.lines for s in sources))
    yield 'static functions with exactly one caller', '%d %%' % round(
        100 * sum(s[1] for s in statics) / sum(s[0] for s in statics))
    yield '.c files with a header of their own', '%d of %d, %d %%' % (own, len(sources), 100 * own // len(sources))
    yield 'files in circles of calls', '%d of %d, in %d circles' % (
        sum(map(len, circle)), len(sources), len(circle))
    yield 'biggest folder of src', '%s, %.1f %%' % (biggest, 100 * size / src_lines)
    yield 'headers named _parts', '%d' % sum(p.endswith('_parts.h') for p in headers)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    if '--circles' not in sys.argv:
        for name, value in table(root):
            print('%-44s %s' % (name, value))
        print()
    sources = [Source(p, read(root, p)) for p in tree(root, ['src'], ('.c',))]
    for circle in circles(call_graph(sources)):
        print(' '.join(circle))


if __name__ == '__main__':
    main()
