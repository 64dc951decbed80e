# SPDX-License-Identifier: Apache-2.0
"""Usage: plan_faults.py PROGRAM SOURCE_ROOT

Changes single values of plans, of each kind of key some: by a digit, to a neighbour's value, to null, and
away; a hash in the file is made right again. check PLAN finds those that contradict the rest of the plan,
--against what is computed anew, --against --search what a search finds anew. AP_SEED chooses the values,
AP_CASES how many of each kind of key, AP_SHARE multiplies the share that is tried (1: as SUBJECTS say);
AP_SHOW=1 lists what is not found.
"""
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:3])
SEED = int(os.environ.get('AP_SEED', '1'))
CASES = int(os.environ.get('AP_CASES', '1'))
SHARE = float(os.environ.get('AP_SHARE', '0.6'))
SHOW = os.environ.get('AP_SHOW') == '1'
MODELS = os.path.join(SOURCE, 'models')


def leaves(value, path=()):
    """Every value below a key or in a list, containers as well."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield path + (key,)
        if isinstance(inner, (dict, list)):
            yield from leaves(inner, path + (key,))


def kind_of(path):
    return '.'.join('[]' if isinstance(key, int) else key for key in path).replace('.[]', '[]')


def at(plan, path):
    for key in path:
        plan = plan[key]
    return plan


def kind_of_value(value):
    return 'number' if type(value) in (int, float) else type(value).__name__


def by_digit(value, rng):
    """The number with one digit another one."""
    text = json.dumps(value)
    places = [i for i, c in enumerate(text) if c.isdigit() and 'e' not in text[:i]]
    i = rng.choice(places)
    digit = rng.choice([d for d in '123456789' if d != text[i]])
    return json.loads(text[:i] + digit + text[i + 1:])


def neighbour(plan, path):
    """The value of the next element, or of another key of the same object, of the same type."""
    holder, value = at(plan, path[:-1]), at(plan, path)
    others = holder.values() if isinstance(holder, dict) else holder[path[-1] + 1:] + holder[:path[-1]]
    for other in others:
        if kind_of_value(other) == kind_of_value(value) and other != value:
            return other
    return None


def changes(plan, path, rng):
    """Names of changes and the values that they put there; None stands for null, Ellipsis for nothing."""
    value = at(plan, path)
    if isinstance(value, bool):
        yield 'flip', not value
    elif isinstance(value, (int, float)):
        yield 'digit', by_digit(value, rng)
    elif isinstance(value, str):
        yield 'digit', value[:-1] + ('x' if value[-1:] != 'x' else 'y')
    if value is not None:
        yield 'null', None
        other = neighbour(plan, path)
        if other is not None:
            yield 'neighbour', other
    yield 'removal', Ellipsis


def changed(text, path, value):
    """The plan of this text with the value there; json.loads() copies faster than copy.deepcopy()."""
    other = json.loads(text)
    holder = at(other, path[:-1])
    if value is Ellipsis:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    if path[0] == 'settings' and isinstance(other.get('settings'), dict):
        text = json.dumps(other['settings'], separators=(',', ':'), ensure_ascii=False)
        other['inputs']['settings']['sha256'] = hashlib.sha256(text.encode()).hexdigest()
    return other


def rows():
    """Keys of plan_form.def in its order, and the class of each."""
    with open(os.path.join(SOURCE, 'src/planfile/plan_form.def'), encoding='utf-8') as file:
        text = file.read()
    parts = {'GROUP': ['.axes', '.ranks'], 'STEPS': [''] + re.findall(r'path "(\[\]\.\w+)"', text)}
    found = {}
    for macro, path, rest in re.findall(r'^([A-Z]+)\("([^"]+)"([^)]*)\)', text, re.MULTILINE):
        known = re.search(r'(COMPUTED|SEARCHED|STATED)$', rest)
        for part in parts.get(macro, ['']):
            if macro not in ('SINCE', 'FIGURE'):
                found[path + part] = known.group(1) if known else 'COMPUTED'
    return found


ROWS = rows()
ORDER = {path: i for i, path in enumerate(ROWS)}


def class_of(kind):
    """That of the innermost row that the value is in; an input's object is as its name and its hash."""
    if kind.split('.')[0] == 'settings' or kind in ('inputs.graph', 'inputs.chip', 'inputs.software'):
        return 'STATED'
    while kind not in ROWS:
        kind = kind[:-2] if kind.endswith('[]') else kind.rpartition('.')[0]
    return ROWS[kind]


def check_order(value, path=''):
    """Every key that is written has a row, and they come in their order."""
    if isinstance(value, list):
        for inner in value:
            check_order(inner, path + '[]')
    elif isinstance(value, dict) and path != 'settings':
        paths = [f'{path}.{key}' if path else key for key in value]
        assert all(p in ROWS for p in paths), [p for p in paths if p not in ROWS]
        assert paths == sorted(paths, key=ORDER.get), paths
        for p, inner in zip(paths, value.values()):
            check_order(inner, p)


def check_page():
    """The manual page names every key."""
    with open(os.path.join(SOURCE, 'man/autopar-plan.5'), encoding='utf-8') as file:
        words = set(re.findall(r'\w+', file.read()))
    for path in ROWS:
        assert path.rpartition('.')[2] in words, path + ' is not in autopar-plan(5)'


def run(arguments, cwd):
    environment = {k: v for k, v in os.environ.items() if k not in ('RANK_TABLE_FILE', 'AUTOPAR_PLAN_MODELS')}
    return subprocess.run([PROGRAM] + arguments, cwd=cwd, capture_output=True, text=True, env=environment,
                          check=False)


class Subject:
    """A plan, and what of it is changed."""

    def __init__(self, name, graph, arguments, share, folder):
        self.name, self.folder, self.graph = name, folder, graph
        out = run(['search', graph] + arguments + ['-q', '--plan-out', name + '.json'], folder)
        assert out.returncode == 0, (name, out.stderr)
        with open(os.path.join(folder, name + '.json'), encoding='utf-8') as file:
            self.text = file.read()
        self.plan = json.loads(self.text)
        check_order(self.plan)
        rng = random.Random(f'{SEED} {name}')
        places = {}
        for path in leaves(self.plan):
            places.setdefault(kind_of(path), []).append(path)
        self.cases = []
        for kind, paths in places.items():
            for path in rng.sample(paths, min(CASES, len(paths))):
                for change, value in changes(self.plan, path, rng):
                    if value != at(self.plan, path) and rng.random() < share * SHARE:
                        self.cases.append((kind, path, change, value))

    def hold(self):
        """Each change is found where its class is."""
        for further in [], ['--against', self.graph], ['--against', self.graph, '--search']:
            out = run(['check', self.name + '.json', '--strict', '-q'] + further, self.folder)
            assert out.returncode == 0, (self.name, further, out.stdout, out.stderr)
        missed = self.check()
        found = len(self.cases) - len(missed)
        print(f'{self.name}: seed {SEED}: of {len(self.cases)} changes check PLAN finds {found}, ', end='')
        assert found > 0.7 * len(self.cases)
        missed = self.against(missed)
        print(f'--against {len(self.cases) - len(missed)}, ', end='', flush=True)
        assert not [case for case in missed if class_of(case[0]) == 'COMPUTED'], missed
        missed = self.against(missed, ['--search'])
        stated = sum(class_of(case[0]) == 'STATED' for case in self.cases)
        print(f'--search {len(self.cases) - len(missed)}; {stated} are of statements')
        assert not [case for case in missed if class_of(case[0]) != 'STATED'], missed
        for kind, path, change, value in missed if SHOW else []:
            print('   ', kind, change, at(self.plan, path), '->', value)

    def write(self, case, name):
        _, path, _, value = case
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            file.write(json.dumps(changed(self.text, path, value)))

    def check(self):
        """Cases that check PLAN finds nothing wrong in."""
        names = [f'{i}.json' for i in range(len(self.cases))]
        for name, case in zip(names, self.cases):
            self.write(case, name)
        missed = []
        for first in range(0, len(names), 200):
            out = run(['check', '--json'] + names[first:first + 200], self.folder)
            assert out.returncode in (0, 4), (out.returncode, out.stderr[-500:])
            for case, said in zip(self.cases[first:], json.loads(out.stdout)['files']):
                if not said['errors'] and not said['warnings']:
                    missed.append(case)
        for name in names:
            os.remove(os.path.join(self.folder, name))
        return missed

    def against(self, cases, further=()):
        """Those of the cases that --against finds nothing in."""
        missed = []
        for case in cases:
            self.write(case, 'changed.json')
            out = run(['check', 'changed.json', '--against', self.graph, '-q'] + list(further), self.folder)
            assert out.returncode in (0, 1, 2, 3, 4), (self.name, case, out.returncode, out.stderr)
            if out.returncode == 0:
                missed.append(case)
        return missed


GPT = ['gpt3', '--model-name', 'gpt', '--layers', '2', '--hidden', '64', '--heads', '4', '--sequence', '32',
       '--vocabulary', '128', '--batch', '32']
EXPERTS = ['mixtral', '--model-name', 'experts', '--layers', '1', '--hidden', '64', '--heads', '4', '--sequence', '16',
           '--vocabulary', '128', '--batch', '16', '--experts', '4', '--inner', '64', '--kv-heads', '4']
SMALL = ['--chip=a100-80', '--device-num=8']
SUBJECTS = [ # name, graph, arguments, share of the changes that are tried
    ('mix', 'multiple_mix', ['--device-num=8', '--chip=ascend910b'], 0.4),
    ('pipe', 'multiple_mix', ['--device-num=8', '--chip=ascend910b', '--pipeline-stages=2',
                              '--micro-batches=4'], 0.2),
    ('route', 'multiple_mix', ['--device-num=8', '--chip=ascend910b', '--executor=mindspore-semi-auto'], 0.2),
    ('certified', 'multiple_mix', ['--device-num=8', '--chip=ascend910b', '--executor=generic'], 0.1),
    ('dealt', GPT, SMALL + ['--enable-parallel-optimizer', '--parallel-optimizer-threshold=0',
                            '--optimizer-level=level2', '--micro-batches=2', '--recompute=full'], 0.15),
    ('rows', GPT[:-4] + ['--vocabulary', '125', '--batch', '32'], SMALL + [
        '--enable-parallel-optimizer', '--parallel-optimizer-threshold=0', '--executor=torchtitan', '--hybrid=dp=8,mbn=2'], 0.1),
    ('flat', GPT[:-4] + ['--vocabulary', '125', '--batch', '32'], SMALL + [
        '--enable-parallel-optimizer', '--parallel-optimizer-threshold=0', '--executor=megatron', '--hybrid=dp=4,tp=2,mbn=2'], 0.15),
    ('interleaved', GPT, SMALL + ['--hybrid=dp=2,tp=2,pp=2,vpp=2,mbs=2', '--pipeline-scheduler=interleaved'], 0.15),
    ('experts', EXPERTS, SMALL + ['--hybrid=dp=4,tp=2,ep=2'], 0.1),
    ('eighths', GPT, ['--chip=h100', '--device-num=8', '--executor=generic', '--hybrid=dp=4,tp=2,sp=1,mbs=2', '--fp8-format=hybrid',
                      '--enable-parallel-optimizer', '--parallel-optimizer-threshold=0', '--fp8-param-gather'], 0.1),
    ('halo', 'resnet50', ['--device-num=64', '--chip=ascend910b', '--batch=8', '--work-limit=1000000'], 0.1),
]


def single(subject, name, change):
    """Exit code of check on the plan with what change does to it."""
    plan = json.loads(subject.text)
    change(plan)
    with open(os.path.join(subject.folder, name), 'w', encoding='utf-8') as file:
        file.write(json.dumps(plan))
    return run(['check', name, '-q'], subject.folder).returncode


def check_known(subject):
    """Changes that a reader would not forgive."""
    def shift(plan):
        plan['operators'][1]['in_tensor_map'][0][0] += 7

    assert single(subject, 'status.json', lambda p: p['search'].update(status='perfect')) == 4
    assert single(subject, 'step.json', lambda p: p['prediction'].update(step_time_s=1e-6)) == 4
    assert single(subject, 'none.json', lambda p: p.pop('parameters')) == 4
    assert single(subject, 'empty.json', lambda p: p.update(parameters=[])) == 4
    assert single(subject, 'ranks.json', lambda p: p['stages'][0]['ranks'].pop()) == 4
    assert single(subject, 'device_num.json', lambda p: p['settings'].update(device_num=64)) == 4
    assert single(subject, 'map.json', shift) == 4


def check_without(subject):
    """A plan that lacks a part, or has something else in its place, is no crash, --against a graph neither."""
    for key in subject.plan:
        for value in Ellipsis, None, [], {}, 'text', 1:
            subject.write((None, (key,), None, value), 'without.json')
            for further in [], ['--against', subject.graph]:
                out = run(['check', 'without.json', '-q'] + further, subject.folder)
                right = (1, 3, 4) if value in ('text', 1) else (0, 1, 3, 4) # a list may well be empty
                assert out.returncode in right, (key, value, further, out.returncode, out.stderr)


def check_version(subject):
    """What another version says of the same inputs is told apart."""
    def older(plan):
        plan['tool']['version'] = '0.1.0'
        plan['prediction']['communication_s'] *= 1.01
        for stage in plan['stages']:
            del stage['held']

    assert single(subject, 'older.json', older) == 0
    for further, code in ([], 0), (['--strict'], 1):
        out = run(['check', 'older.json', '--against', subject.graph] + further, subject.folder)
        assert out.returncode == code, (out.returncode, out.stderr)
        assert 'made by version 0.1.0' in out.stderr, out.stderr


def make_graph(graph, folder):
    if isinstance(graph, str):
        return os.path.join(MODELS, graph + '.json')
    path = os.path.join(folder, graph[2] + '.graph.json')
    with open(path, 'w', encoding='utf-8') as file:
        subprocess.run([PROGRAM, 'model'] + graph, stdout=file, check=True)
    return path


def main():
    check_page()
    with tempfile.TemporaryDirectory() as folder:
        for name, graph, arguments, share in SUBJECTS:
            subject = Subject(name, make_graph(graph, folder), arguments, share, folder)
            subject.hold()
            if name == 'mix':
                check_known(subject)
                check_without(subject)
                check_version(subject)


main()
