/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/json_write.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"

static const char *const at_name[] = {[AP_AT_BODY] = "body", [AP_AT_FIRST] = "first", [AP_AT_LAST] = "last"};
static const char *const counts_name[] = {[AP_COUNTS_FREE] = "free", [AP_COUNTS_EQUAL] = "equal"};
static const char *const kinds_name[] = {[AP_KINDS_FREE] = "free", [AP_KINDS_LIST] = "list",
	[AP_KINDS_UNIFORM] = "uniform"};
static const char *const objective_name[] = {[AP_OBJECTIVE_STEP] = "step",
	[AP_OBJECTIVE_STAGE] = "largest_stage"};
static const char *const outcome_name[] = {[AP_OUT_OPTIMAL] = "optimal", [AP_OUT_FEASIBLE] = "feasible",
	[AP_OUT_INFEASIBLE] = "infeasible", [AP_OUT_LIMIT] = "stopped"};

static void write_bytes(struct ap_jw *w, const char *key, const int64_t *bytes, int32_t n)
{
	ap_jw_karr_flat(w, key);
	for (int32_t s = 0; s < n; s++)
		if (bytes[s] == AP_NO_LIMIT)
			ap_jw_null(w);
		else
			ap_jw_int(w, bytes[s]);
	ap_jw_end(w);
}

static void write_row(struct ap_jw *w, const struct ap_partition *p, uint32_t i,
	const struct ap_partition_row *r)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "degree", p->degree[i / p->nkind].name);
	ap_jw_kstr(w, "kind", p->kind[i % p->nkind]);
	ap_jw_knum(w, "forward_s", r->forward_s);
	ap_jw_knum(w, "backward_s", r->backward_s);
	ap_jw_knum(w, "weight_s", r->weight_s);
	ap_jw_knum(w, "beside_s", r->beside_s);
	ap_jw_knum(w, "exchange_s", r->exchange_s);
	ap_jw_knum(w, "slowed_s", r->slowed_s);
	ap_jw_knum(w, "update_s", r->update_s);
	ap_jw_kint(w, "kept_bytes", r->kept_bytes);
	ap_jw_kint(w, "late_bytes", r->late_bytes);
	ap_jw_kint(w, "weights_bytes", r->weights_bytes);
	ap_jw_kint(w, "temporary_bytes", r->temporary_bytes);
	ap_jw_end(w);
}

static void write_classes(struct ap_jw *w, const struct ap_partition *p)
{
	ap_jw_karr(w, "classes");
	for (uint32_t c = 0; c < p->nclass; c++) {
		ap_jw_obj(w);
		ap_jw_kstr(w, "name", p->cls[c].name);
		ap_jw_karr(w, "rows");
		for (uint32_t i = 0; i < p->ndegree * p->nkind; i++)
			if (!p->cls[c].row[i].absent)
				write_row(w, p, i, &p->cls[c].row[i]);
		ap_jw_end(w);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_layers(struct ap_jw *w, const struct ap_partition *p)
{
	ap_jw_karr(w, "layers");
	for (uint32_t r = 0; r < p->nrun; r++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "class", p->cls[p->run[r].cls].name);
		ap_jw_kint(w, "count", p->run[r].count);
		ap_jw_kstr(w, "at", at_name[p->run[r].at]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_rules(struct ap_jw *w, const struct ap_partition *p)
{
	ap_jw_kobj_flat(w, "rules");
	if (p->counts == AP_COUNTS_GIVEN)
		ap_jw_kints(w, "counts", p->count, (size_t)p->nstage * (size_t)p->nsegment);
	else
		ap_jw_kstr(w, "counts", counts_name[p->counts]);
	ap_jw_kint(w, "least_layers", p->least_layers);
	ap_jw_kint(w, "least_at_ends", p->least_at_ends);
	ap_jw_kstr(w, "kinds", kinds_name[p->kinds]);
	ap_jw_kbool(w, "degree_by_stage", p->degree_by_stage);
	ap_jw_end(w);
}

void ap_partition_write_json(const struct ap_partition *p, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-pipeline/1");
	ap_jw_kstr(&w, "objective", objective_name[p->objective]);
	ap_jw_kint(&w, "stages", p->nstage);
	ap_jw_kint(&w, "segments", p->nsegment);
	ap_jw_kint(&w, "micro_batches", p->nmicro);
	ap_jw_kstr(&w, "scheduler", p->scheduler->name);
	write_bytes(&w, "capacity_bytes", p->capacity_bytes, p->nstage);
	write_bytes(&w, "fixed_bytes", p->fixed_bytes, p->nstage);
	if (p->devices > 0)
		ap_jw_kint(&w, "devices", p->devices);
	ap_jw_karr(&w, "degrees");
	for (uint32_t d = 0; d < p->ndegree; d++) {
		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "name", p->degree[d].name);
		ap_jw_knum(&w, "send_s", p->degree[d].send_s);
		ap_jw_knum(&w, "send_back_s", p->degree[d].send_back_s);
		ap_jw_knum(&w, "receive_s", p->degree[d].receive_s);
		ap_jw_knum(&w, "receive_back_s", p->degree[d].receive_back_s);
		if (p->degree[d].left_s > 0)
			ap_jw_knum(&w, "left_s", p->degree[d].left_s);
		if (p->devices > 0)
			ap_jw_kint(&w, "devices", p->degree[d].devices);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_kobj_flat(&w, "shared");
	ap_jw_knum(&w, "send_s", p->shared.send_s);
	ap_jw_knum(&w, "send_back_s", p->shared.send_back_s);
	ap_jw_end(&w);
	ap_jw_karr_flat(&w, "kinds");
	for (uint32_t k = 0; k < p->nkind; k++)
		ap_jw_str(&w, p->kind[k]);
	ap_jw_end(&w);
	write_classes(&w, p);
	write_layers(&w, p);
	write_rules(&w, p);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

struct writing {
	struct ap_jw *w;
	const struct ap_partition *p;
	const struct ap_partition_plan *plan;
	int32_t npart;
};

/* Layers from..to - 1, all of run r, by kind. */
static void write_run(const struct writing *x, uint32_t r, int64_t from, int64_t to)
{
	ap_jw_obj_flat(x->w);
	ap_jw_kstr(x->w, "class", x->p->cls[x->p->run[r].cls].name);
	ap_jw_kint(x->w, "layers", to - from);
	ap_jw_kobj_flat(x->w, "kinds");
	for (uint32_t k = 0; k < x->p->nkind; k++) {
		int64_t n = 0;

		for (int64_t i = from; i < to; i++)
			n += x->plan->kind[i] == k;
		if (n > 0)
			ap_jw_kint(x->w, x->p->kind[k], n);
	}
	ap_jw_end(x->w);
	ap_jw_end(x->w);
}

static void write_part(const struct writing *x, int32_t q)
{
	const struct ap_partition *p = x->p;
	int64_t nfirst = 0, from, to, begin = 0;
	int32_t stage, segment;

	for (uint32_t r = 0; r < p->nrun; r++)
		nfirst += p->run[r].at == AP_AT_FIRST ? p->run[r].count : 0;
	from = q == 0 ? 0 : nfirst + x->plan->first[q];
	to = q + 1 == x->npart ? ap_partition_layers(p) : nfirst + x->plan->first[q + 1];
	ap_schedule_spot(p->scheduler, p->nstage, q, &stage, &segment);
	ap_jw_obj_flat(x->w);
	ap_jw_kint(x->w, "stage", stage);
	ap_jw_kint(x->w, "segment", segment);
	ap_jw_kint(x->w, "layers", x->plan->first[q + 1] - x->plan->first[q]);
	ap_jw_karr_flat(x->w, "runs");
	for (uint32_t r = 0; r < p->nrun; r++) {
		int64_t end = begin + p->run[r].count;
		int64_t a = from > begin ? from : begin, b = to < end ? to : end;

		if (a < b)
			write_run(x, r, a, b);
		begin = end;
	}
	ap_jw_end(x->w);
	ap_jw_end(x->w);
}

static void write_stage(const struct writing *x, const struct ap_partition_stage *s, int32_t i)
{
	ap_jw_obj_flat(x->w);
	ap_jw_kstr(x->w, "degree", x->p->degree[x->plan->degree[i]].name);
	if (x->p->devices > 0)
		ap_jw_kint(x->w, "devices", x->p->degree[x->plan->degree[i]].devices);
	ap_jw_knum(x->w, "passes_s", s->busy_s);
	ap_jw_knum(x->w, "end_s", s->end_s);
	ap_jw_kint(x->w, "memory_bytes", s->memory_bytes);
	ap_jw_end(x->w);
}

static void write_plan(const struct writing *x, const struct ap_partition_choice *c)
{
	ap_jw_knum(x->w, "step_s", c->worth.step_s);
	ap_jw_knum(x->w, "largest_stage_s", c->worth.largest_s);
	if (x->plan->number) {
		ap_jw_kobj_flat(x->w, "kinds_of_each_part");
		for (uint32_t k = 1; k < x->p->nkind; k++)
			ap_jw_kint(x->w, x->p->kind[k], x->plan->number[k]);
		ap_jw_end(x->w);
	}
	ap_jw_karr(x->w, "parts");
	for (int32_t q = 0; q < x->npart; q++)
		write_part(x, q);
	ap_jw_end(x->w);
	ap_jw_karr(x->w, "stages");
	for (int32_t s = 0; s < x->p->nstage; s++)
		write_stage(x, &c->worth.stage[s], s);
	ap_jw_end(x->w);
}

void ap_partition_choice_write_json(const struct ap_partition *p, const struct ap_partition_choice *c,
	ap_write_fn *write, void *user)
{
	struct ap_jw w;
	struct writing x = {&w, p, c->plan, p->nstage * p->nsegment};

	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-pipeline-solution/1");
	ap_jw_kstr(&w, "engine", c->engine);
	ap_jw_kstr(&w, "status", outcome_name[c->outcome]);
	ap_jw_kstr(&w, "ended", ap_ended_name(c->ended));
	ap_jw_key(&w, "objective");
	if (c->plan)
		ap_jw_num(&w, c->cost);
	else
		ap_jw_null(&w);
	ap_jw_knum(&w, "lower_bound", c->lower_bound);
	if (c->plan)
		ap_jw_knum(&w, "gap_percent", c->lower_bound > 0 ? 100 * (c->cost / c->lower_bound - 1)
			: c->cost > 0 ? INFINITY : 0);
	if (c->outcome == AP_OUT_INFEASIBLE && c->short_bytes > 0)
		ap_jw_kint(&w, "short_bytes", c->short_bytes);
	ap_jw_kint(&w, "work", (int64_t)c->work);
	if (c->plan)
		write_plan(&x, c);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
