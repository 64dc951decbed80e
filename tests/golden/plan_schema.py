#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: plan_schema.py PROGRAM SCHEMA SOURCE_ROOT

Plans of many kinds are valid by the JSON Schema that is installed, with no key that it does not know, and have
nearly all that it knows; so are the plans among the tests' files that check takes. A plan without a key that is
required, or with a value of another type, is not valid, as check finds, too.
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

PROGRAM, SCHEMA, SOURCE = (os.path.abspath(argument) for argument in sys.argv[1:4])
MIX, FLASH = (os.path.join(SOURCE, 'models', name + '.json') for name in ('multiple_mix', 'gpt3_13b_flash'))
NPUS = ['--device-num', '8', '--chip', 'ascend910a']
RUNS = [
    ['search', MIX, *NPUS],
    ['search', MIX, os.path.join(SOURCE, 'models/topo/ascend910_8p.json'), '--certify'],
    ['search', MIX, *NPUS, '--executor', 'mindspore-sharding-propagation'],
    ['search', MIX, *NPUS, '--enable-parallel-optimizer', '--micro-batches', '2', '--search-mode',
     'recursive_programming'],
    ['search', MIX, '--device-num', '8', '--chip', 'a100-80', '--run-phase', 'inference'],
    ['search', FLASH, '--device-num', '16', '--chip', 'ascend910b', '--pipeline-stages', '4', '--micro-batches', '8',
     '--pipeline-segments', '2', '--pipeline-scheduler', 'interleaved', '--batch', '16',
     '--enable-parallel-optimizer', '--recompute', 'full'],
    ['search', os.path.join(SOURCE, 'models/gpt3_1.3b.json'), '--device-num', '8', '--chip', 'ascend910b',
     '--pipeline-stages', '4', '--micro-batches', '8', '--batch', '16', '--pipeline-scheduler', 'zero_bubble_v'],
    ['evaluate', os.path.join(SOURCE, 'models/gpt3_1.3b.json'), '--device-num', '8', '--chip', 'ascend910b',
     '--batch', '16', '--executor', 'generic', '--hybrid', 'pp=2,tp=4,sp=1,mbs=2', '--recompute', 'full:3,1,mlp'],
    ['evaluate', os.path.join(SOURCE, 'models/gpt3_1.3b.json'), '--device-num', '8', '--chip', 'h100-80',
     '--batch', '6', '--executor', 'generic', '--hybrid', 'dp=2,tp=4,sp=1,mbs=3', '--fp8-format', 'hybrid'],
    ['search', os.path.join(SOURCE, 'models/gpt3_1.3b.json'), '--device-num', '8', '--chip', 'b200-180', '--executor',
     'generic', '--fp8-format', 'e4m3'],
    ['search', os.path.join(SOURCE, 'tests/golden/settings/config.json'), '--device-num', '8', '--chip', 'a100-80'],
    ['plan', MIX, '--device-num', '8,16', '--chip', 'a100-80', '--executor', 'generic', '--tokens', '1B', '--price', '2',
     '--unequal-stages'],
    ['plan', MIX, *(os.path.join(SOURCE, f'models/topo/ascend910_{n}p.json') for n in (8, 16)), '--executor', 'generic'],
    ['plan', os.path.join(SOURCE, 'models/gpt3_1.3b.json'), '--device-num', '8', '--chip', 'a100-80', '--batch', '64',
     '--executor', 'torchtitan', '--memory', '15GB'],
    *(['plan', 'vit.json', '--device-num', '8', '--chip', 'h100', '--executor', 'generic', '--pipeline-stages', '4',
       '--unequal-stages', *more] for more in ([], ['-o', 'vit.ckpt'])),  # which no checkpoint can hold
    # a token for each sample, repeated; two classes, rows that eight ranks do not divide
    ['search', 'vit.json', '--device-num', '8', '--chip', 'h100', '--executor', 'megatron', '--enable-parallel-optimizer',
     '--parallel-optimizer-threshold', '0'],
]
# Of operators that none of these networks has: windows that are cut, copies of another type, steps back that
# differ; experts with uneven numbers of tokens, which two axes cut on their way to them, beside a shared one; hybrids with dealt sums that win.
RARE = ('search.hybrid', 'operators[].cost.load', 'operators[].in_8_bits.keeps_copy', 'baselines[].not_applicable', 'parameters[].read_as', 'redistributions[].back_steps',
        *(f'redistributions[].{way}[].concat_inner_{key}' for way in ('steps', 'back_steps') for key in ('dim', 'outer')),
        *(f'operators[].communications[].{key}' for key in ('after', 'before', 'concat_dim', 'dim', 'each_micro_batch', 'part')))


def paths(value, at=''):
    """The path of every key, as the rows have them."""
    if isinstance(value, list):
        for inner in value:
            yield from paths(inner, at + '[]')
    elif isinstance(value, dict) and at != 'settings':
        for key, inner in value.items():
            path = f'{at}.{key}' if at else key
            yield path
            yield from paths(inner, path)


def known(schema, at=''):
    """The paths that the schema knows; its objects are closed on the way."""
    for inner in schema.get('anyOf', []):
        yield from known(inner, at)
    if 'items' in schema:
        yield from known(schema['items'], at + '[]')
    if 'properties' in schema:
        schema['additionalProperties'] = False
        for key, inner in schema['properties'].items():
            path = f'{at}.{key}' if at else key
            yield path
            yield from known(inner, path)


def run(arguments, cwd):
    environment = {k: v for k, v in os.environ.items() if k != 'RANK_TABLE_FILE'}
    return subprocess.run([PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True, env=environment, check=False)


def check(plan, folder):
    """Does check find anything?"""
    path = pathlib.Path(folder, 'changed.json')
    path.write_text(json.dumps(plan), encoding='utf-8')
    return run(['check', str(path), '-q'], folder).returncode != 0


VIT = {'model_type': 'vit', 'hidden_size': 64, 'num_hidden_layers': 2, 'num_attention_heads': 4, 'intermediate_size': 128,
       'image_size': 32, 'patch_size': 8, 'num_channels': 3, 'hidden_act': 'gelu', 'id2label': {'0': 'a', '1': 'b'}}


def made(folder):
    path = pathlib.Path(folder, 'config.json')
    path.write_text(json.dumps(VIT), encoding='utf-8')
    out = run(['import', str(path), '-q', '--batch', '64', '-o', 'vit.json'], folder)
    assert out.returncode == 0, out.stderr
    for i, arguments in enumerate(RUNS):
        out = run([*arguments, '-q', '--plan-out', f'{i}.json'], folder)
        assert out.returncode == 0, (arguments, out.stderr)
        out = run(['check', f'{i}.json', '-q'], folder)
        assert out.returncode == 0, (arguments, out.stderr)
        yield ' '.join(arguments), json.loads(pathlib.Path(folder, f'{i}.json').read_text(encoding='utf-8'))


def kept(folder):
    for path in sorted(pathlib.Path(SOURCE, 'tests').rglob('*.json')):
        text = path.read_bytes()
        if b'"autopar-plan/1"' in text[:200] and run(['check', str(path), '-q'], folder).returncode == 0:
            yield str(path), json.loads(text)


def main():
    schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding='utf-8'))
    jsonschema.Draft7Validator.check_schema(schema)
    rows = set(known(schema))
    validator = jsonschema.Draft7Validator(schema)
    seen, n = set(), 0
    with tempfile.TemporaryDirectory() as folder:
        plans = list(made(folder))
        for name, plan in plans + list(kept(folder)):
            for error in validator.iter_errors(plan):
                sys.exit(f'{name}: {"/".join(map(str, error.absolute_path))}: {error.message[:300]}')
            seen.update(paths(plan))
            n += 1
        unseen = sorted(path for path in rows - seen if not path.startswith(RARE))
        assert seen <= rows and not unseen, (seen - rows, unseen)
        _, plan = plans[0]
        for key in plan:
            if plan[key] is None or key == 'settings':
                continue
            for value in 'x', -1, True:
                changed = copy.deepcopy(plan)
                changed[key] = value
                assert not validator.is_valid(changed) and check(changed, folder), (key, value)
            changed = copy.deepcopy(plan)
            del changed[key]
            assert not validator.is_valid(changed) and check(changed, folder), key
    print(f'{n} plans, {len(rows)} keys')


main()
