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

/* Peak rate for a type. A type that the unit lacks runs on the vector unit; one that both lack runs
 * there as float32. */
static double peak_of(const struct ap_chip *chip, enum ap_unit unit, enum ap_dtype dtype)
{
	if (chip->peak_flops[unit][dtype] > 0)
		return chip->peak_flops[unit][dtype];
	if (chip->peak_flops[AP_UNIT_VECTOR][dtype] > 0)
		return chip->peak_flops[AP_UNIT_VECTOR][dtype];
	return chip->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32];
}

static double compute_s(const struct ap_chip *chip, const struct ap_kernel *k)
{
	enum ap_unit unit = unit_of(k->unit);
	double peak = peak_of(chip, unit, k->dtype);
	static const double none[3];
	const double *half = peak > chip->peak_flops[AP_UNIT_VECTOR][k->dtype] ? chip->matmul_half : none;
	double efficiency = k->efficiency > 0 ? k->efficiency
		: ap_dtype_is_float8(k->dtype) ? chip->matmul_float8_efficiency : chip->matmul_efficiency;

	if (k->unit == AP_OP_MEMORY)
		return 0;
	if (k->gemm && k->unaligned)
		return 2 * k->b * k->m * k->n * k->k /
			(chip->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32] * chip->vector_efficiency);
	if (k->gemm)
		return 2 * k->b * (k->m + half[0]) * (k->n + half[1]) * (k->k + half[2]) *
			fmax(1, k->slowdown) / (peak * efficiency * chip->sustained);
	if (unit == AP_UNIT_CUBE)
		return k->flops / (peak * efficiency);
	return k->flops / (peak * chip->vector_efficiency);
}

double ap_kernel_time_s(const struct ap_chip *chip, const struct ap_kernel *k)
{
	double memory_s = k->bytes / (chip->memory_Bps * chip->memory_efficiency);
	double time_s;

	if (k->unit == AP_OP_VIEW || k->unit == AP_OP_LINK)
		return 0;
	time_s = fmax(compute_s(chip, k), memory_s);
	if (!k->joined)
		time_s = fmax(fmax(1, k->starts) * k->launch_s,
			fmax(1, k->starts) * chip->fixed_s[unit_of(k->unit)] + time_s);
	assert(isfinite(time_s));
	return time_s;
}
