/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of one kernel on one device: a fixed cost plus the roofline of compute and memory traffic.
 * The efficiency of matrix products falls with each short extent; in closed form
 *
 *   t = fixed + max(2 b (m + hm) (n + hn) (k + hk) / (peak * eff), bytes / (bandwidth * eff_mem))
 *
 * where eff is that of the operands' type (8 bits have their own), and hm, hn, hk are the extents at which
 * that dimension alone halves the rate (chip profile; the shape of the measured curves: long K helps, short N
 * and K after tensor parallelism must pay). A type in which the matrix unit is no faster than the
 * vector unit, such as a V100's float32, runs there in small tiles, without these extents. Products of a
 * batch with rows that the matrix unit cannot load run on the vector unit in float32, in its tiles of m and
 * n, whose edges are filled in vain, but without its pipeline along k. What another kernel starts has no
 * fixed cost. A product of experts is a kernel for each. Of a product that several operators are, side by
 * side along n, each pays its share of the fixed cost and of hn. The host starts a kernel every launch_s:
 * it runs ahead of the device where kernels take longer (plan/pass.h); one by itself takes the longer of
 * both.
 */
#ifndef AP_COST_KERNEL_H
#define AP_COST_KERNEL_H

#include "hw/chip.h"
#include "rule/rule.h"

struct ap_kernel {
	enum ap_op_unit unit;
	enum ap_dtype dtype; /* of the arithmetic */
	double flops; /* on this device; ignored for products of matrices */
	double bytes; /* read and written */
	bool gemm; /* a product of matrices of shape b, m, n, k */
	double b, m, n, k;
	double part; /* of a product that several operators are, this one's share; 0: it is one by itself */
	bool along_k; /* they lie side by side along k, not n */
	bool unaligned; /* rows that the matrix unit cannot load: on the vector unit, in float32 */
	double efficiency; /* share of the peak, where the kernel has one of its own; 0: the unit's */
	double slowdown; /* of a product by what runs beside it; 0: none */
	double launch_s; /* in which the host starts it */
	double starts; /* kernels that it is, one for each expert of a grouped product; 0: one */
	bool joined; /* a part of a kernel that something else starts */
};

/* Seconds of one that nothing runs ahead of: max(launch, time on the device). */
double ap_kernel_time_s(const struct ap_chip *chip, const struct ap_kernel *k);

/* What it is made of: on the device fixed + max(flops / rate, bytes / Bps). */
struct ap_kernel_parts {
	double flops, flops_per_s; /* with the extents that halve the rate;
		at the unit's share of its peak; 0:
	                              nothing is computed */
	double bytes, Bps;
	double fixed_s, launch_s; /* of all its starts */
	enum { AP_KERNEL_BY_COMPUTE, AP_KERNEL_BY_MEMORY, AP_KERNEL_BY_LAUNCH } by; /* what decides; LAUNCH:
		the host takes longer than the device */
	const double *constant[8]; /* fields of the chip that it is made of, NULL-terminated */
	double s; /* on the device */
};
void ap_kernel_parts(const struct ap_chip *chip, const struct ap_kernel *k, struct ap_kernel_parts *out);

#endif
