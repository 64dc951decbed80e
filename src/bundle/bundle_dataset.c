/* SPDX-License-Identifier: Apache-2.0 */
/* dataset_strategy of a bundle whose inputs are cut each in its own way. */
#include "base/json_write.h"
#include "bundle/bundle_parts.h"

/* The parts of each dimension: those of one rank follow one another. */
static void arrival_parts(const struct ap_arrival *a, int rank, struct ap_jw *w)
{
	ap_jw_arr(w);
	for (int d = 0; d < rank; d++)
		ap_jw_int(w, a->cut > 1 && d == a->dim ? a->cut : 1);
	ap_jw_end(w);
}

/* A Layout on the stage's devices: repeats, parts, repeats. */
static void arrival_layout(const struct ap_bundle *b, const struct ap_arrival *a, int rank,
	struct ap_jw *w)
{
	const int64_t parts = a->cut > 1 ? a->cut : 1, stride = a->cut > 1 ? a->stride : 1;
	const int64_t matrix[] = {b->plan->machine->ndev / (parts * stride), parts, stride};
	static const char *const names[] = {"outer", "parts", "inner"};

	ap_jw_obj(w);
	ap_jw_kints(w, "device_matrix", matrix, 3);
	ap_jw_key(w, "alias_name");
	ap_jw_arr(w);
	for (int i = 0; i < 3; i++)
		ap_jw_str(w, names[i]);
	ap_jw_end(w);
	ap_jw_key(w, "tensor_map");
	ap_jw_arr(w);
	for (int d = 0; d < rank; d++)
		ap_jw_str(w, a->cut > 1 && d == a->dim ? names[1] : "None");
	ap_jw_end(w);
	ap_jw_end(w);
}

/* Numbers of parts where they can say it of all inputs: MindSpore takes no mixture. */
void ap_bundle_write_arrivals(const struct ap_bundle *b, struct ap_jw *w)
{
	const struct ap_step *step = b->plan->step;
	const struct ap_graph *g = b->plan->graph;
	bool plain = true;

	for (uint32_t i = 0; i < step->narrival; i++)
		plain &= step->arrival[i].cut <= 1 || step->arrival[i].stride == 1;
	ap_jw_arr(w);
	for (uint32_t i = 0; i < step->narrival; i++) {
		int rank = g->tensor[g->input[i]].shape.rank;

		if (plain)
			arrival_parts(&step->arrival[i], rank, w);
		else
			arrival_layout(b, &step->arrival[i], rank, w);
	}
	ap_jw_end(w);
}
