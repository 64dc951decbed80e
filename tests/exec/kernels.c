/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernel.h"

/* A line for each file kern_*.c. */
static const struct ex_kernel *const families[] = {
	ex_kernels_elem, ex_kernels_binary, ex_kernels_product, ex_kernels_reduce, ex_kernels_running,
	ex_kernels_spectrum, ex_kernels_resize,
	ex_kernels_move, ex_kernels_slice, ex_kernels_whole,
	ex_kernels_fill,
	ex_kernels_norm, ex_kernels_window, ex_kernels_index, ex_kernels_choose, ex_kernels_loss,
	ex_kernels_dot, ex_kernels_quant,
	ex_kernels_attn, ex_kernels_gather, ex_kernels_scatter, ex_kernels_drop, ex_kernels_boxes,
	ex_kernels_infer, ex_kernels_cache, ex_kernels_moe,
	NULL,
};

const struct ex_kernel *ex_kernel_at(size_t i)
{
	for (size_t f = 0; families[f]; f++)
		for (const struct ex_kernel *k = families[f]; k->type; k++)
			if (i-- == 0)
				return k;
	return NULL;
}

const struct ex_kernel *ex_kernel_find(const char *type)
{
	for (size_t f = 0; families[f]; f++)
		for (const struct ex_kernel *k = families[f]; k->type; k++)
			if (strcmp(k->type, type) == 0)
				return k;
	return NULL;
}
