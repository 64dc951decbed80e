/* SPDX-License-Identifier: Apache-2.0 */
/* What costs are rounded to, and that totals stay exact whatever the chip. */
#include <math.h>
#include <string.h>

#include "base/num.h"
#include "fixture.h"
#include "harness.h"
#include "cost/quantum.h"
#include "hw/chip.h"
#include "table/table.h"

static double quantum_on(struct fixture *f, const struct ap_chip *chip)
{
	struct ap_machine m = *f->machine;

	m.chip = chip;
	return ap_cost_quantum_s(&f->ctx, f->graph, &m, &f->step);
}

START_TEST(usual_steps_have_the_usual_one)
{
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910b3");
	fixture_graph(&f, FIXTURE_PAIR);
	ck_assert(quantum_on(&f, f.machine->chip) == AP_QUANTUM_S);
	fixture_close(&f);
}
END_TEST

/* Slower by a factor of 2^20, the quantum is larger by that: once it is above the usual one. */
START_TEST(it_grows_with_the_step)
{
	struct ap_chip chip;
	struct fixture f;
	double before;

	fixture_open(&f, 8, 8, "ascend910b3");
	fixture_graph(&f, FIXTURE_PAIR);
	chip = *f.machine->chip;
	memset(chip.fixed_s, 0, sizeof chip.fixed_s);
	chip.memory_Bps = 1e20;
	for (int t = 0; t < AP_DTYPE_COUNT; t++)
		chip.peak_flops[AP_UNIT_CUBE][t] = chip.peak_flops[AP_UNIT_VECTOR][t] = 1;
	before = quantum_on(&f, &chip);
	ck_assert(before > AP_QUANTUM_S && before < 1e-6);
	for (int t = 0; t < AP_DTYPE_COUNT; t++)
		chip.peak_flops[AP_UNIT_CUBE][t] = chip.peak_flops[AP_UNIT_VECTOR][t] = 0x1p-20;
	ck_assert(quantum_on(&f, &chip) == before * 0x1p20);
	fixture_close(&f);
}
END_TEST

/* The dearest candidate of each operator, added up forward or backward. */
static double dearest_s(const struct ap_problem *p, bool backwards)
{
	double sum = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		const struct ap_pnode *n = &p->node[backwards ? p->n - 1 - k : k];
		double most = 0;

		for (uint32_t c = 0; c < n->k; c++)
			most = n->cost[c] < INFINITY && n->cost[c] > most ? n->cost[c] : most;
		sum += most;
	}
	return sum;
}

START_TEST(sums_of_slow_steps_have_no_order)
{
	struct ap_table_params params = {.prune = false};
	const struct ap_table *t;
	struct ap_machine m;
	struct ap_chip chip;
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910b3");
	fixture_graph(&f, FIXTURE_PAIR);
	chip = *f.machine->chip;
	for (int x = 0; x < AP_DTYPE_COUNT; x++)
		chip.peak_flops[AP_UNIT_CUBE][x] = chip.peak_flops[AP_UNIT_VECTOR][x] = 0.3;
	chip.memory_Bps = 0.7;
	m = *f.machine;
	m.chip = &chip;
	m.level[0].bandwidth_Bps = 0.1;
	f.step.quantum_s = ap_cost_quantum_s(&f.ctx, f.graph, &m, &f.step);
	ck_assert_int_eq(ap_table_make(&f.ctx, f.graph, &m, &f.step, &params, &t), AP_OK);
	ck_assert(t->problem->quantum == f.step.quantum_s);
	ck_assert(t->least_s > 0x1p13);
	ck_assert(t->least_s < 0x1p52 * f.step.quantum_s);
	for (uint32_t i = 0; i < t->problem->n; i++)
		for (uint32_t c = 0; c < t->problem->node[i].k; c++) {
			double v = t->problem->node[i].cost[c] / f.step.quantum_s;

			ck_assert(v == rint(v));
		}
	ck_assert(dearest_s(t->problem, false) == dearest_s(t->problem, true));
	ck_assert(dearest_s(t->problem, false) < 0x1p53 * f.step.quantum_s);
	fixture_close(&f);
}
END_TEST
