# SPDX-License-Identifier: Apache-2.0
"""Usage: map.py SOURCE_ROOT

The map in docs/architecture.md against the tree: its folders are those of src, in the order of the layers; every file
of src is named exactly once, a header with the .c file of its name; nothing is named that does not exist. A name with a
star stands for several files. Files that the text of architecture.md and of CONTRIBUTING.md names exist, and so do
those that comments of src name.
"""
import collections
import fnmatch
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1])
failed = False


def fail(what):
    global failed
    failed = True
    print(what)


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as file:
        return file.read()


def modules(folder):
    """Names as the map gives them: a .c file without its suffix, all other files with it."""
    files = [f for f in os.listdir(os.path.join(ROOT, 'src', folder)) if f.endswith(('.c', '.h', '.def', '.py', '.css', '.js'))]
    return {f[:-2] if f.endswith('.c') else f for f in files if not (f.endswith('.h') and f[:-2] + '.c' in files)}


def layers():
    """Folders from the top down."""
    text = read('tests/lint/layers.sh').split("allowed='\n")[1].split("'")[0]
    return [line.split()[0] for line in text.splitlines()[::-1] if line.split()[0] != 'autopar']


def the_map():
    text = read('docs/architecture.md').split('\n## Map\n')[1].split('```\n')[1]
    found, folder = {}, None
    for line in text.splitlines():
        room = re.fullmatch(r'(\w+)/ +(\S.*)', line)
        row = re.fullmatch(r'  ([\w.*]+) +(\S.*)', line)
        if room:
            folder = found.setdefault(room[1], collections.Counter())
        elif row and folder is not None:
            folder[row[1]] += 1
        else:
            fail(f'map: neither "folder/  text" nor "  file  text": {line}')
    return found


def compare(folder, named):
    there = modules(folder)
    hits = collections.Counter()
    for name, times in named.items():
        files = fnmatch.filter(there, name)
        if not files:
            fail(f'map: src/{folder} has no {name}')
        for file in files:
            hits[file] += times
    for file in sorted(there):
        if hits[file] != 1:
            fail(f'map: src/{folder}: {file} is named {hits[file]} times, not once')


def comments():
    """Files that a comment of src names are somewhere in the tree."""
    there = {name for top in ('src', 'include', 'tests', 'tools', 'bench', 'docs', 'examples')
             for _, _, names in os.walk(os.path.join(ROOT, top)) for name in names}
    for folder, _, names in os.walk(os.path.join(ROOT, 'src')):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ROOT)
            for comment in re.findall(r'/\*.*?\*/', read(path) if name.endswith(('.c', '.h', '.def')) else '', re.S):
                for file in re.findall(r'(?<![\w.<*>-])(?:[a-z]\w*/)*([a-z]\w+\.(?:c|h|def))\b', comment):
                    if file not in there:
                        fail(f'{path}: a comment names {file}, which is not there')


def main():
    found = the_map()
    order = layers()
    folders = {f for f in os.listdir(os.path.join(ROOT, 'src')) if os.path.isdir(os.path.join(ROOT, 'src', f))}
    if set(found) != folders:
        fail(f'map: folders are not those of src: {" ".join(sorted(set(found) ^ folders))}')
    if list(found) != [f for f in order if f in found]:
        fail(f'map: folders are not in the order of the layers: {" ".join(order)}')
    for folder in sorted(set(found) & folders):
        compare(folder, found[folder])
    for page in ('docs/architecture.md', 'CONTRIBUTING.md'):
        for path in sorted(set(re.findall(r'\b(?:src|include|tests|tools)/[\w/]+\.(?:c|h|def|py|sh|tsv)\b', read(page)))):
            if 'NAME' not in path and not os.path.exists(os.path.join(ROOT, path)):
                fail(f'{page}: no file {path}')
        for path in sorted(set(re.findall(r'`([a-z]+/[\w/]+\.(?:c|h|def))`', read(page)))):
            top = path.split('/')[0]
            if top in folders and not os.path.exists(os.path.join(ROOT, 'src', path)):
                fail(f'{page}: no file src/{path}')
    comments()
    sys.exit(failed)


main()
