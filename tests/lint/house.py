# SPDX-License-Identifier: Apache-2.0
"""Usage: house.py SOURCE_ROOT

Where things stand. No circle of calls between files of src that is not listed in circles.txt, with its reason. A
global function of a .c file is declared in the header of the same name, or in the one header of its folder that
speaks for files without one; owners.txt lists what is not so yet. What is listed and no longer there is to be
struck off, which AP_UPDATE=1 does. A file of unit tests is named after a module of its folder, and every file of
tests is in meson.build. Nobody changes the sink or the arena of a context that was given: a lack of memory would
leave it so; ap_diag_apart() makes another one.
"""
import collections
import os
import re
import sys

ROOT = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(ROOT, 'tools'))
sys.dont_write_bytecode = True
import measure  # noqa: E402 the path comes first

failed = False


def fail(what):
    global failed
    failed = True
    print(what)


def listed(name):
    """Lines of a list, of words; a reason stands above, in lines that begin with #."""
    found, reason = [], False
    with open(os.path.join(ROOT, 'tests/lint', name), encoding='utf-8') as file:
        for line in file.read().splitlines():
            if line.startswith('#'):
                reason = True
            elif line.strip():
                found.append(line.strip())
                if not reason:
                    fail(f'{name}: no reason above: {line}')
            else:
                reason = False
    return found


def strike(name, gone):
    """Without these lines, and without the reasons that nothing is left below of."""
    path = os.path.join(ROOT, 'tests/lint', name)
    with open(path, encoding='utf-8') as file:
        parts = [[line for line in part.splitlines() if line not in gone] for part in file.read().split('\n\n')]
    left = ['\n'.join(part) for part in parts if any(line and line[0] != '#' for line in part)]
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n\n'.join(left) + '\n' if left else '')


def compare(name, now, what):
    known, now = listed(name), set(now)
    for line in sorted(now - set(known)):
        fail(f'{what}: {line}')
    gone = sorted(set(known) - now)
    if gone and os.environ.get('AP_UPDATE'):
        strike(name, gone)
        return
    for line in gone:
        fail(f'{name} lists what is no longer so: {line}')


def strangers(sources):
    """FILE.c HEADER.h: a global of the file is declared in this header of its folder or of another."""
    headers = {p: set(measure.WORD.findall(measure.bare(measure.read(ROOT, p))))
               for p in measure.tree(ROOT, ['src'], ('.h',))}
    declared = collections.defaultdict(set)
    for path, words in headers.items():
        for word in words:
            declared[word].add(path)
    found, private = set(), collections.defaultdict(collections.Counter)
    for source in sources:
        own = source.path[:-2] + '.h'
        for name, static, _, _ in source.functions:
            if static or name.startswith('__') or own in declared[name]:
                continue
            for header in declared[name]:
                found.add((source.path, header))
                if own not in headers and os.path.dirname(header) == os.path.dirname(own):
                    private[os.path.dirname(own)][header] += 1
    for source, header in sorted(found):
        folder = os.path.dirname(source)
        spoken = private[folder].most_common(1)
        if source[:-2] + '.h' in headers or not spoken or header != spoken[0][0]:
            yield f'{source} {header}'


def tests():
    """A module for each file of unit tests, a line in meson.build for each file of tests."""
    for path in measure.tree(ROOT, ['tests'], ('.c',)):
        folder, name = os.path.split(path)
        if not name.startswith('test_'):
            continue
        listing = 'tests/unit/meson.build' if folder.startswith('tests/unit/') else folder + '/meson.build'
        if folder == 'tests/unit/tools':
            listing = 'tools/meson.build'
        if not re.search(rf'\b{name[:-2]}\b', measure.read(ROOT, listing)):
            fail(f'{path} is not in {listing}')
        room = os.path.join(ROOT, 'src', folder[len('tests/unit/'):])
        if folder.startswith('tests/unit/') and os.path.isdir(room):
            modules = {os.path.splitext(file)[0] for file in os.listdir(room)}
            words = name[len('test_'):-2].split('_')
            if not any('_'.join(words[:n]) in modules for n in range(1, len(words) + 1)):
                fail(f'{path} is named after no module of {os.path.relpath(room, ROOT)}')


def contexts(sources):
    for source in sources:
        if source.path == 'src/base/attempt.c':  # which takes both ways out
            continue
        for found in re.finditer(r'\bctx->(arena|scratch|diag) = ', measure.read(ROOT, source.path)):
            fail(f'{source.path} changes a context that was given: {found[0]}')


def main():
    sources = [measure.Source(p, measure.read(ROOT, p)) for p in measure.tree(ROOT, ['src'], ('.c',))]
    circles = [' '.join(circle) for circle in measure.circles(measure.call_graph(sources))]
    tests()
    contexts(sources)
    compare('circles.txt', circles, 'a circle of calls that is not listed')
    compare('owners.txt', strangers(sources), 'declared neither in its own header nor in that of its folder')
    sys.exit(failed)


main()
