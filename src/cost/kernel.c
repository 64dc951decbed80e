/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/kernel.h"

#include <assert.h>
#include <math.h>

static enum ap_unit unit_of(enum ap_op_unit unit)
{
	static const enum ap_unit of[] = {
		[AP_OP_CUBE] = AP_UNIT_CUBE,
		[AP_OP_VECTOR] = AP_UNIT_VECTOR,
		[AP_OP_MEMORY] = AP_UNIT_MEMORY,
		[AP_OP_VIEW] = AP_UNIT_MEMORY,
		[AP_OP_LINK] = AP_UNIT_MEMORY,
	};

	return of[unit];
}

/* Peak rate for a type, as a field of the chip. A type that the unit lacks runs on the vector unit; one that
 * both lack runs there as float32. */
static const double *peak_of(const struct ap_chip *chip, enum ap_unit unit, enum ap_dtype dtype)
{
	if (chip->peak_flops[unit][dtype] > 0)
		return &chip->peak_flops[unit][dtype];
	if (chip->peak_flops[AP_UNIT_VECTOR][dtype] > 0)
		return &chip->peak_flops[AP_UNIT_VECTOR][dtype];
	return &chip->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32];
}

static void add_constant(struct ap_kernel_parts *x, const double *field)
{
	size_t n = 0;

	while (x->constant[n])
		n++;
	assert(n + 1 < sizeof x->constant / sizeof *x->constant);
	x->constant[n] = field;
}

static double part_of(const struct ap_kernel *k)
{
	return k->part > 0 ? k->part : 1;
}

/* Sets what is computed and at which rate. */
static void set_compute(const struct ap_chip *chip, const struct ap_kernel *k, struct ap_kernel_parts *x)
{
	enum ap_unit unit = unit_of(k->unit);
	const double *peak = peak_of(chip, unit, k->dtype);
	static const double none[3];
	bool halves = *peak > chip->peak_flops[AP_UNIT_VECTOR][k->dtype];
	const double *half = halves ? chip->matmul_half : none;
	const double *shares = ap_dtype_is_float8(k->dtype) ? &chip->matmul_float8_efficiency
		: &chip->matmul_efficiency;
	double efficiency = k->efficiency > 0 ? k->efficiency : *shares;
	double hn = half[1] * (k->along_k ? 1 : part_of(k)), hk = half[2] * (k->along_k ? part_of(k) : 1);

	if (k->unit == AP_OP_MEMORY)
		return;
	if (k->gemm && k->unaligned) {
		x->flops = 2 * k->b * (k->m + half[0]) * (k->n + hn) * k->k;
		x->flops_per_s = chip->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32] * chip->vector_efficiency;
		add_constant(x, &chip->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32]);
		add_constant(x, &chip->vector_efficiency);
		if (halves)
			add_constant(x, chip->matmul_half);
		return;
	}
	add_constant(x, peak);
	if (k->gemm) {
		x->flops = 2 * k->b * (k->m + half[0]) * (k->n + hn) * (k->k + hk) * fmax(1, k->slowdown);
		x->flops_per_s = *peak * efficiency * chip->sustained;
		if (halves)
			add_constant(x, chip->matmul_half);
		if (chip->sustained < 1)
			add_constant(x, &chip->sustained);
	} else {
		x->flops = k->flops;
		x->flops_per_s = *peak * (unit == AP_UNIT_CUBE ? efficiency : chip->vector_efficiency);
	}
	if (unit != AP_UNIT_CUBE)
		add_constant(x, &chip->vector_efficiency);
	else if (!(k->efficiency > 0))
		add_constant(x, shares);
}

void ap_kernel_parts(const struct ap_chip *chip, const struct ap_kernel *k, struct ap_kernel_parts *x)
{
	double compute_s, memory_s;

	*x = (struct ap_kernel_parts){.bytes = k->bytes, .Bps = chip->memory_Bps * chip->memory_efficiency};
	if (k->unit == AP_OP_VIEW || k->unit == AP_OP_LINK)
		return;
	set_compute(chip, k, x);
	compute_s = x->flops_per_s > 0 ? x->flops / x->flops_per_s : 0;
	memory_s = x->bytes / x->Bps;
	x->by = memory_s > compute_s ? AP_KERNEL_BY_MEMORY : AP_KERNEL_BY_COMPUTE;
	x->s = fmax(compute_s, memory_s);
	if (!k->joined) {
		x->launch_s = fmax(1, k->starts) * part_of(k) * k->launch_s;
		x->fixed_s = fmax(1, k->starts) * part_of(k) * chip->fixed_s[unit_of(k->unit)];
		x->s += x->fixed_s;
		x->by = x->launch_s > x->s ? AP_KERNEL_BY_LAUNCH : x->by;
		add_constant(x, &chip->fixed_s[unit_of(k->unit)]);
	}
	if (x->by == AP_KERNEL_BY_MEMORY) {
		add_constant(x, &chip->memory_Bps);
		add_constant(x, &chip->memory_efficiency);
	}
	assert(isfinite(x->s));
}

double ap_kernel_time_s(const struct ap_chip *chip, const struct ap_kernel *k)
{
	struct ap_kernel_parts x;

	ap_kernel_parts(chip, k, &x);
	return fmax(x.launch_s, x.s);
}
