#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Usage: collectives.py PROGRAM

What a block of a hybrid says to its neighbours, under --executor generic, is what Megatron's does: counts of the
collectives of GPT and Llama blocks with and without sp, for several samples a micro-batch and several cp, and
their volumes by formula. s tokens of b samples, h wide, t = tp, c = cp, 2 bytes each:
  sp=0  2 AllReduces of s b h / c forward, and 2 backward
  sp=1  2 AllGathers and 2 ReduceScatters of s b h / c forward, and 2 of each backward, beside the 2 AllGathers by
        which what products read is gathered again
  dp    4 bytes of gradient for each parameter of a rank, a step: an AllReduce; or a ReduceScatter, and an AllGather of
        2 bytes. A table of words that is the head, too, is exchanged once
  pp    s b h a boundary, micro-batch and direction, divided by t where sums are dealt; v times the boundaries with v
        segments; a tied table goes there, and its gradient back, once a step
  cp    2 AllGathers forward, of keys and values, s b h_kv / t each, and 2 ReduceScatters backward; where heads share
        keys, which are repeated behind the gather, AllReduces of the copies' gradients
However many products read a tensor, or equal views of it, and sum its gradient.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = os.path.abspath(sys.argv[1])
DEVICES, HIDDEN, HEADS, VOCABULARY = 8, 1024, 16, 8192
COMMON = ['--hidden', str(HIDDEN), '--heads', str(HEADS), '--vocabulary', str(VOCABULARY)]
MODELS = {  # options, key and value heads, words that every operator of the second block has in its name
    'gpt3': ([], HEADS, 'blocks-CellList/1-'),
    'llama': (['--inner', '2816', '--kv-heads', '8'], 8, 'layers-CellList/1-'),
}


def with_views_apart(text):
    """The graph, each operand that reads a Reshape of its own, which is the same for all of a tensor."""
    graph, seen = json.loads(text), collections.Counter()
    by_result = {o['outputs'][0]['name']: o for o in graph['operators'] if o['type'] == 'Reshape'}
    for o in list(graph['operators']):
        for i, x in enumerate(o['inputs']):
            seen[x] += x in by_result
            if seen[x] > 1:
                view = by_result[x]
                o['inputs'][i] = f'{x}.{seen[x]}'
                graph['operators'].append(view | {'name': f"{view['name']}.{seen[x]}",
                                                  'outputs': [view['outputs'][0] | {'name': o['inputs'][i]}]})
    assert max(seen.values()) > 1
    return json.dumps(graph)


def plan(folder, model, hybrid, batch, sequence=2048, attention='small', executor='generic', layers=2, options=(),
         change=None):
    graph, out = (os.path.join(folder, name) for name in ('graph.json', 'plan.json'))
    text = subprocess.run([PROGRAM, 'model', model, *COMMON, *MODELS[model][0], '--sequence', str(sequence),
                           '--batch', str(batch), '--layers', str(layers), '--attention', attention], capture_output=True, check=True, text=True)
    with open(graph, 'w', encoding='utf-8') as f:
        f.write(change(text.stdout) if change else text.stdout)
    subprocess.run([PROGRAM, 'evaluate', graph, '--device-num', str(DEVICES), '--chip', 'ascend910b3', '--batch',
                    str(batch), '--executor', executor, '--hybrid', hybrid, '--plan-out', out, '--quiet', *options], check=True)
    subprocess.run([PROGRAM, 'check', out], check=True, stdout=subprocess.DEVNULL)
    with open(out, encoding='utf-8') as f:
        return json.load(f)


def exchanged(p, block, phase, steps):
    """Of the operators of a block and what leads to them: collective and its devices, to number and bytes."""
    seen = collections.defaultdict(lambda: [0, 0])
    for o in p['operators']:
        for c in o['communications'] if block in o['name'] else []:
            if c['phase'] == phase:
                add = seen[c['kind'], tuple(map(tuple, c['axes']))]
                add[0] += 1
                add[1] += c['bytes']
    for r in p['redistributions']:
        for s in r.get(steps, []) if block in r['to'] else []:
            add = seen[s['kind'], (tuple(s['axis']),)]
            add[0] += 1
            add[1] += max(s['bytes_before'], s['bytes_after'])
    return dict(seen)


def forward(p, block):
    return exchanged(p, block, 'forward', 'steps')


def counts_and_volumes(folder):
    for model, (_, kv_heads, block) in MODELS.items():
        for t, c, sp, b in [(8, 1, sp, b) for sp in (0, 1) for b in (1, 2, 4, 8)] + \
                [(8, 1, 1, b) for b in (3, 5, 6, 7)] + [(4, 2, sp, b) for sp in (0, 1) for b in (2, 3, 4, 8)] + \
                [(t, c, sp, 1) for sp in (0, 1) for t, c in ((4, 2), (2, 4), (1, 8), (1, 2))]:
            d = DEVICES // (t * c)
            p = plan(folder, model, f'dp={d},tp={t},cp={c},sp={sp},mbs={b}', 2 * b * d)
            tokens, want = 2 * 2048 * b // c, {}
            if t > 1 and sp:
                want['AllGather', ((1, t),)] = want['ReduceScatter', ((1, t),)] = [2, 2 * tokens * HIDDEN]
            elif t > 1:
                want['AllReduce', ((1, t),)] = [2, 2 * tokens * HIDDEN]
            if c > 1:
                want['AllGather', ((t, c),)] = [2, 2 * tokens * c * HIDDEN * kv_heads // HEADS // t]
            got = forward(p, block)
            assert got == want, (model, t, c, sp, b, got, want)
            if c > 1:  # what was gathered is a sum on its way back
                keys = want.pop(('AllGather', ((t, c),)))
                want['ReduceScatter', ((t, c),)] = keys
            if c > 1 and kv_heads < HEADS:  # it is one of the heads' copies, which are added up behind it
                del want['ReduceScatter', ((t, c),)]
                want['AllReduce', ((t, c),)] = [2, keys[1] * HEADS // kv_heads]
                want['Slice', ((t, c),)] = keys
            got = exchanged(p, block, 'backward', 'back_steps')
            assert got == want, (model, t, c, sp, b, got, want)
            again = [r for r in p['redistributions'] if block in r['to'] and r['steps'] and r['steps'][0]['axis'] ==
                     [1, t] and r['backward_s'] > 1.9 * r['forward_s']]
            assert len(again) == (2 if sp and t > 1 else 0), (model, t, c, sp, b, again)


def views_are_one(folder):
    """Products that read Reshapes of their own of one tensor share one copy, as those of one Reshape do."""
    for model, (_, _, block) in MODELS.items():
        for executor, t, c, sp, b in ('generic', 8, 1, 1, 2), ('generic', 8, 1, 0, 1), ('generic', 4, 2, 1, 1), \
                ('megatron', 4, 1, 1, 2):
            d, seen = DEVICES // (t * c), []
            for change in None, with_views_apart:
                p = plan(folder, model, f'dp={d},tp={t},cp={c},sp={sp},mbs={b}', 2 * b * d, executor=executor,
                         change=change)
                seen.append((forward(p, block), exchanged(p, block, 'backward', 'back_steps'),
                             sum(r['kept_bytes'] for r in p['redistributions']), activations_s(p, block, 2)))
            assert seen[0][:3] == seen[1][:3] and within(seen[0][3], seen[1][3]), (model, executor, t, c, sp, b, seen)
            moved = [r for r in p['redistributions'] if block in r['to'] and 'shares' in r]
            others = {(r['tensor'], p['redistributions'][r['shares']]['tensor']) for r in moved}
            assert any(x != y for x, y in others), (model, executor, t, c, sp, b, moved)


def exchanges(folder):
    """Keys and values go round once in each pass, the way back with their gradients; a causal sequence that is not
    dealt in pairs takes (2 c - 1) / c of the mean where it takes most; what the kernel covers takes no time."""
    for model, (_, kv_heads, block) in MODELS.items():
        for t, c, sp, b in (4, 2, 0, 1), (4, 2, 1, 2), (2, 4, 1, 1), (1, 4, 0, 2):
            of = {}
            for executor, algorithm in ('generic', 'all-gather'), ('generic', 'ring'), ('megatron', 'ring'):
                hybrid = f'dp={DEVICES // t // c},tp={t},cp={c},sp={sp},mbs={b},cp_algo={algorithm}'
                p = plan(folder, model, hybrid, 2 * b * DEVICES // t // c, 2048, 'flash', executor)
                of[executor, algorithm] = next(o for o in p['operators'] if block in o['name'] and
                                               o['type'] == 'FlashAttentionScore')
                gathers = [s for r in p['redistributions'] for s in r['steps'] if block in r['to'] and
                           s['axis'] == [t, c] and s['kind'] == 'AllGather']
                rings = [(o['phase'], o['operand'], o['axes'], o['bytes']) for o in
                         of[executor, algorithm]['communications'] if o['kind'] == 'Ring']
                size = 2 * 2048 * b * HIDDEN * kv_heads // HEADS // t
                want = [(phase, i, [[t, c]], n) for i in (1, 2) for phase, n in
                        (('forward', size), ('backward', 2 * size))] if algorithm == 'ring' else []
                assert rings == want and len(gathers) == (0 if want else 2), (model, t, c, rings, gathers)
            even = of['megatron', 'ring']['cost']['backward_s']
            most = of['generic', 'ring']['cost']['backward_s']
            assert 1 < most / even <= (2 * c - 1) / c, (model, c, most, even)
    for model, (_, kv_heads, block) in MODELS.items():
        for t, c, sp, b in (4, 2, 0, 1), (2, 4, 1, 2), (1, 8, 0, 1):
            p = plan(folder, model, f'dp=1,tp={t},cp={c},sp={sp},mbs={b},cp_algo=all-to-all', 2 * b, 2048, 'flash')
            o = next(o for o in p['operators'] if block in o['name'] and o['type'] == 'FlashAttentionScore')
            query = 2 * 2048 * b * HIDDEN // t // c
            got = sorted((x['phase'], x['kind'], x['axes'], x['bytes']) for x in o['communications'])
            assert got == sorted((phase, 'AlltoAll', [[t, c]], n) for phase in ('forward', 'backward')
                                 for n in (query, query, *[query * kv_heads // HEADS] * 2)), (model, t, c, got)
            assert not [r for r in p['redistributions'] for s in r['steps'] if s['axis'] == [t, c] and block in r['to']]
    swapped_by_mindformers(folder)
    refused(folder, 'megatron', 'tp=4,cp=2,cp_algo=a2b', 'all-gather, ring or all-to-all is expected')
    refused(folder, 'torchtitan', 'tp=4,cp=2,cp_algo=a2a', 'torchtitan has all-gather, ring')
    plan(folder, 'llama', 'dp=1,tp=4,cp=2,mbs=1', 16, 2048, 'flash')
    refused(folder, 'generic', 'dp=1,tp=4,cp=4,mbs=1,cp_algo=ulysses', 'deals the 2 heads of keys and values', 16)
    p = plan(folder, 'llama', 'dp=1,tp=2,cp=4,mbs=1,cp_algo=ring', 2, 65536, 'flash')
    assert all(c['time_s'] == 0 for o in p['operators'] for c in o['communications'] if c['kind'] == 'Ring')


def sends(folder):
    """Between stages: s b h on each rank, and 1 / t of it where sums are dealt, or the tensor is for its way; which
    is then gathered once more."""
    for model, (_, _, block) in MODELS.items():
        for sp, scatter, parts in (0, 0, 1), (0, 1, 4), (1, 0, 4), (1, 1, 4):
            p = plan(folder, model, f'dp=1,tp=4,pp=2,sp={sp},mbs=2,pp_scatter={scatter}', 16)
            sent = [(c['phase'], c['bytes']) for o in p['operators'] if o['type'] == 'Send' and not o.get('once')
                    for c in o['communications']]
            size = 2 * 2048 * 2 * HIDDEN // parts
            assert sent == [('forward', size), ('backward', size)], (model, sp, scatter, sent)
            behind = [s for r in p['redistributions'] for s in r['steps'] if (r['from'] or '').startswith('Receive/')
                      and block in r['to'] and s['axis'] == [1, 4]]
            assert bool(behind) == (scatter == 1 and sp == 0), (model, sp, scatter, behind)


def parameters(model, t, layers, first=True, last=True):
    """Of a rank: of layers, of the stage with the table of words, and of that with the head."""
    h, v = HIDDEN, VOCABULARY
    if model == 'gpt3':  # rows of the columns' products are whole, and so are norms and positions
        return layers * (12 * h * h // t + 7 * h // t + 6 * h) + first * (v * h // t + 2048 * h) + last * 2 * h + \
            (not first) * v * h // t
    kv = 8 * h // HEADS
    return layers * ((2 * h + 2 * kv + 3 * 2816) * h // t + 2 * h) + (first + last) * v * h // t + last * h


def within(got, want):
    return abs(got - want) <= 0.01 * want


def swapped_by_mindformers(folder):
    """What no strategy of MindSpore says, MindFormers' networks do by a word of theirs."""
    bundle = os.path.join(folder, 'bundle')
    p = plan(folder, 'llama', 'dp=1,tp=2,cp=4,mbs=1,cp_algo=ulysses_cp', 2, 2048, 'flash', 'mindformers',
             options=['--bundle', bundle])
    attention = [o for o in p['operators'] if o['type'] == 'FlashAttentionScore']
    query = 2 * 2048 * HIDDEN // 2 // 4
    for o in attention:
        assert sorted((c['phase'], c['kind'], c['axes'], c['bytes']) for c in o['communications']) == sorted(
            (phase, 'AlltoAll', [[2, 4]], n) for phase in ('forward', 'backward')
            for n in (query, query, query // 2, query // 2)), o['communications']
    with open(os.path.join(bundle, 'mindformers.yaml'), encoding='utf-8') as f:
        assert '  context_parallel_algo: ulysses_cp\n' in f.read()
    with open(os.path.join(bundle, 'operator_strategies.json'), encoding='utf-8') as f:
        text = f.read()
        assert 'BatchMatMul' not in text and 'RmsNorm' in text and 'FlashAttentionScore' not in text
    with open(os.path.join(bundle, 'README.txt'), encoding='utf-8') as f:
        assert '2 operators of attention exchange heads for the sequence' in f.read()
    refused(folder, 'mindspore', 'tp=2,cp=4,mbs=1,cp_algo=a2a', 'mindspore has all-gather')
    plan(folder, 'llama', 'dp=1,tp=2,cp=4,mbs=1', 2)
    for algorithm in ('ring', 'all-to-all'):
        refused(folder, 'generic', f'dp=1,tp=2,cp=4,mbs=1,cp_algo={algorithm}',
                f'cp_algo={algorithm} takes attention that is one operator')


def data_parallel(folder):
    """Bytes of the exchange of all gradients, and where updates are dealt, of the weights that come back."""
    for model, (d, t, pp, sp), dealt in [(m, degrees, dealt) for m in MODELS for dealt in (False, True)
                                         for degrees in ((8, 1, 1, 0), (2, 4, 1, 1), (2, 2, 2, 1))]:
        p = plan(folder, model, f'dp={d},tp={t},pp={pp},sp={sp},mbs=1', 16, layers=4,
                 options=['--enable-parallel-optimizer'] if dealt else [])
        for stage in range(pp):
            bytes_of = collections.Counter()
            for o in p['operators']:
                for c in o['communications'] if o['stage'] == stage else []:
                    if c['phase'] in ('gradient', 'optimizer') and o['type'] != 'Send':
                        assert d in [n for _, n in c['axes']] or c['axes'] == [[1, d * t]], c
                        bytes_of[c['kind']] += c['bytes']
            own = parameters(model, t, 4 // pp, stage == 0, stage == pp - 1)
            tied = VOCABULARY * HIDDEN // t if model == 'gpt3' and stage > 0 else 0  # belongs to the first stage
            assert set(bytes_of) <= {'AllReduce', *(('ReduceScatter', 'AllGather') if dealt else ())}, bytes_of
            if not dealt:
                assert within(bytes_of['AllReduce'], 4 * own), (model, d, t, pp, stage, bytes_of, own)
                continue
            assert within(bytes_of['ReduceScatter'], 4 * (own - tied)), (model, d, t, pp, stage, bytes_of, own)
            assert within(bytes_of['AllGather'], 2 * (own - tied)), (model, d, t, pp, stage, bytes_of, own)
            assert abs(bytes_of['AllReduce'] - 4 * tied) <= 0.01 * 4 * own, (model, d, t, pp, stage, bytes_of, own)
        sums = [s for x in p['parameters'] for s in x.get('gradient_sums', [])]
        assert len(sums) == (model == 'gpt3' and pp == 1), (model, pp, sums)


def pipeline(folder):
    """Bytes that all stages send in a step."""
    for model in MODELS:
        for t, pp, v, sp, scatter, b in (2, 4, 1, 0, 0, 1), (2, 4, 1, 0, 1, 2), (2, 2, 1, 1, 0, 2), (2, 2, 2, 1, 0, 1), \
                (2, 2, 2, 0, 0, 1), (1, 4, 2, 0, 0, 1):
            d, layers = DEVICES // (t * pp), 8
            p = plan(folder, model, f'dp={d},tp={t},pp={pp},vpp={v},sp={sp},mbs={b},pp_scatter={scatter}', 16 * d,
                     layers=layers)
            m, sent, once = p['pipeline']['micro_batches'], collections.Counter(), []
            assert m == 16 // b, m
            for o in p['operators']:
                for c in o['communications'] if o['type'] == 'Send' else []:
                    if o.get('once'):
                        once.append((c['phase'], c['from_stage'], c['to_stage'], c['bytes']))
                    else:
                        assert (c['to_stage'] - c['from_stage']) % pp == (1 if c['phase'] == 'forward' else pp - 1), c
                        sent[c['phase']] += m * c['bytes']
            want = 2 * 2048 * b * HIDDEN // (t if sp or scatter else 1) * m * (v * pp - 1)
            assert all(within(sent[phase], want) for phase in ('forward', 'backward')), (model, t, pp, v, sp, sent, want)
            table = VOCABULARY * HIDDEN // t
            assert once == ([('forward', 0, pp - 1, 2 * table), ('backward', pp - 1, 0, 4 * table)]
                            if model == 'gpt3' else []), (model, t, pp, v, once)


def refused(folder, executor, hybrid, why, devices=8):
    run = subprocess.run([PROGRAM, 'evaluate', os.path.join(folder, 'graph.json'), '--device-num', str(devices), '--chip',
                          'ascend910b3', '--executor', executor, '--hybrid', hybrid],
                         capture_output=True, text=True, check=False)
    assert run.returncode == 2 and why in run.stderr, (executor, hybrid, run.stderr)


def activations_s(p, block, micro_batches):
    """What the activations of a block take on the way in a step."""
    comms = [c['time_s'] for o in p['operators'] if block in o['name'] for c in o['communications']
             if c['phase'] in ('forward', 'backward')]
    return micro_batches * sum(comms) + sum(r['time_s'] for r in p['redistributions'] if block in r['to'])


def samples_cost_nothing(folder):
    """As many tokens in a micro-batch: as many bytes. As many tokens in a step: fewer, longer collectives."""
    for model, (_, _, block) in MODELS.items():
        same = [activations_s(plan(folder, model, f'tp=8,sp=1,mbs={b}', 8 * b, 6720 // b), block, 8)
                for b in range(1, 9)]
        assert max(same) <= 1.02 * min(same), (model, same)
        step = [activations_s(plan(folder, model, f'tp=8,sp=1,mbs={b}', 120), block, 120 // b)
                for b in (1, 2, 3, 4, 5, 6, 8)]
        assert all(x >= y for x, y in zip(step, step[1:])), (model, step)


def words_are_words(folder):
    """A sample as long as the table of words, or longer: words are cut by tp, the sequence by cp."""
    for model, (_, _, block) in MODELS.items():
        for sequence in (VOCABULARY, 2 * VOCABULARY):
            p = plan(folder, model, 'dp=1,tp=4,cp=2,sp=1,mbs=1', 8, sequence)
            tables = [o for o in p['operators'] if o['type'] == 'Gather']
            assert tables[0]['in_strategy'] == [[4, 1], [1, 2]], tables[0]['in_strategy']
            assert all(o['in_strategy'] == [[1, 1], [1, 8]] for o in tables[1:]), tables
            assert sum(n for n, _ in forward(p, block).values()) == 6


def samples_lie_apart(folder):
    """Rows of several samples, of which cp cuts the sequence, are no one part of all rows: where they cannot be put
    in another order, refused, not priced."""
    for model, (options, _, _) in MODELS.items():
        graph = os.path.join(folder, 'graph.json')
        with open(graph, 'w', encoding='utf-8') as f:
            subprocess.run([PROGRAM, 'model', model, *COMMON, *options, '--layers', '2', '--sequence', '2048', '--batch', '16'], stdout=f, check=True)
        for sp in (0, 1):
            refused(folder, 'mindspore', f'dp=1,tp=4,cp=2,sp={sp},mbs=2', 'cannot be cut by cp')
        for executor in ('mindspore', 'mindformers'):
            refused(folder, executor, 'tp=4,cp=2,cp_algo=ring', f'{executor} has all-gather')
            refused(folder, executor, 'tp=4,pp=2,pp_scatter=1', f'{executor} sends what a rank has')


def main():
    with tempfile.TemporaryDirectory() as folder:
        counts_and_volumes(folder)
        views_are_one(folder)
        data_parallel(folder)
        pipeline(folder)
        sends(folder)
        exchanges(folder)
        samples_cost_nothing(folder)
        words_are_words(folder)
        samples_lie_apart(folder)


main()
