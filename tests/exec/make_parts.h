/* SPDX-License-Identifier: Apache-2.0 */
/* What random operators are made of. */
#ifndef AP_TEST_EXEC_MAKE_PARTS_H
#define AP_TEST_EXEC_MAKE_PARTS_H

#include "kernel.h"

/* A number below n; true once in n. */
int64_t ex_draw(struct ex_sample *s, int64_t n);
bool ex_once_in(struct ex_sample *s, int64_t n);

/* Random extents of together at most `most` elements. */
void ex_draw_shape(struct ex_sample *s, uint8_t rank, int64_t most, int64_t *size);
/* An operand of 1 to `rank` random dimensions. */
unsigned ex_add_any(struct ex_sample *s, const char *dtype, uint8_t rank);
/* An operand with the extents of operand i. */
unsigned ex_add_alike(struct ex_sample *s, const char *dtype, unsigned i);
/* One that broadcasts against operand i: some dimensions of length one, the first ones left out. */
unsigned ex_add_narrow(struct ex_sample *s, const char *dtype, unsigned i);

/* A dimension out of rank, named from the front or from the back; which one. */
int ex_add_axis(struct ex_sample *s, const char *name, int rank);
/* An attribute of one number; axis and dim are lists elsewhere, and so here. */
void ex_add_number(struct ex_sample *s, const char *name, int64_t v);
/* Now and then, so that a missing attribute is met too. */
void ex_add_flag(struct ex_sample *s, const char *name);

/* make_elem.c */
ex_make_fn ex_make_unary, ex_make_logic, ex_make_integer, ex_make_cast, ex_make_halves,
	ex_make_masked;
ex_make_fn ex_make_binary, ex_make_scaled, ex_make_order, ex_make_bits, ex_make_store,
	ex_make_compare, ex_make_logics, ex_make_many, ex_make_pair, ex_make_select, ex_make_fill,
	ex_make_three, ex_make_bias, ex_make_slope, ex_make_divided, ex_make_copy,
	ex_make_scaled_three, ex_make_rows, ex_make_real_pair,
	ex_make_faulty;
/* make_product.c */
ex_make_fn ex_make_product, ex_make_products, ex_make_product_ext, ex_make_quantised,
	ex_make_quantised_weight;
/* make_dot.c */
ex_make_fn ex_make_tensor_dot, ex_make_outer, ex_make_distances, ex_make_square, ex_make_grouped,
	ex_make_feed_forward;
/* make_reduce.c */
ex_make_fn ex_make_reduce, ex_make_reduce_logic, ex_make_largest, ex_make_extreme,
	ex_make_running, ex_make_sort;
/* make_spectrum.c */
ex_make_fn ex_make_spectrum;
/* make_resize.c */
ex_make_fn ex_make_resize;
/* make_move.c, make_slice.c */
ex_make_fn ex_make_reshape, ex_make_new_dim, ex_make_squeeze, ex_make_transpose, ex_make_reverse,
	ex_make_concat, ex_make_stack, ex_make_split, ex_make_split_sizes, ex_make_split_chunks,
	ex_make_broadcast, ex_make_repeat, ex_make_tile, ex_make_slice, ex_make_strided,
	ex_make_slice_one, ex_make_pad, ex_make_triangle, ex_make_diagonal, ex_make_shift,
	ex_make_repeats, ex_make_repeat_by;
/* make_whole.c */
ex_make_fn ex_make_batches, ex_make_unique, ex_make_choice, ex_make_sampler, ex_make_gamma,
	ex_make_matrices, ex_make_systems, ex_make_valid;
/* make_fill.c */
ex_make_fn ex_make_line, ex_make_constant, ex_make_dataset;
/* make_norm.c, make_loss.c */
ex_make_fn ex_make_softmax, ex_make_l2_normalize, ex_make_layer_norm, ex_make_rms_norm,
	ex_make_group_norm, ex_make_batch_norm;
ex_make_fn ex_make_loss_by_labels, ex_make_loss_by_classes, ex_make_loss_of_each,
	ex_make_loss_sums, ex_make_dropout;
/* make_window.c */
ex_make_fn ex_make_convolution, ex_make_transposed, ex_make_pooling;
/* make_index.c */
ex_make_fn ex_make_gather, ex_make_embedding, ex_make_gather_along, ex_make_gather_points,
	ex_make_one_hot, ex_make_top, ex_make_segments;
/* make_attn.c */
ex_make_fn ex_make_flash, ex_make_rotary, ex_make_prompt, ex_make_incre, ex_make_paged;
/* make_scatter.c */
ex_make_fn ex_make_scatter_rows, ex_make_scatter_points, ex_make_index, ex_make_top_along;
/* make_boxes.c */
ex_make_fn ex_make_boxes, ex_make_crop, ex_make_align, ex_make_grid, ex_make_divergence,
	ex_make_dropout_ext, ex_make_dropout_mask, ex_make_mask;
/* make_cache.c */
ex_make_fn ex_make_reshape_and_cache, ex_make_cache, ex_make_places, ex_make_wkv,
	ex_make_moe_init, ex_make_moe_gating, ex_make_expert_tokens, ex_make_moe_finalize,
	ex_make_route, ex_make_dispatch, ex_make_combine, ex_make_weights;
/* make_quant.c */
ex_make_fn ex_make_by_scale, ex_make_dynamic, ex_make_range;

#endif
