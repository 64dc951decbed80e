/* SPDX-License-Identifier: Apache-2.0 */
/* The step that the settings describe. */
#include <inttypes.h>

#include "base/diag.h"
#include "cli/inputs.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cost/optimizer.h"
#include "route/route.h"

#define FAULT(run, ...) \
	ap_diag_add((run)->ctx.diag, AP_ERROR, AP_USAGE, NULL, NULL, __VA_ARGS__)

static enum ap_status unknown_optimizer(struct ap_run *run, const struct ap_json *doc,
	const char *name)
{
	return ap_json_report(&run->ctx, doc, ap_jv_get(ap_json_root(doc), "optimizer"), AP_ERROR,
		AP_MEANING, NULL, "optimizer-known", "unknown optimizer \"%s\"; expected %s",
		ap_diag_name(run->ctx.diag, name),
		ap_option_expects(run->ctx.arena, ap_option_at(AP_OPT_optimizer)));
}

static enum ap_status load_optimizer(struct ap_run *run, const struct ap_json *doc,
	const struct ap_graph *g, const struct ap_optimizer **out)
{
	static const char usual[] = "adam_weight_decay";

	if (run->opt->optimizer >= 0) {
		*out = ap_optimizer_at((size_t)run->opt->optimizer);
		return AP_OK;
	}
	if (*g->optimizer) {
		*out = ap_optimizer_find(g->optimizer);
		return *out ? AP_OK : unknown_optimizer(run, doc, g->optimizer);
	}
	*out = ap_optimizer_find(usual);
	return ap_diag_add(run->ctx.diag, AP_NOTE, AP_OK, NULL, NULL,
		"neither --optimizer nor the graph names an optimizer; %s is assumed", usual);
}

static enum ap_status check_micro_batches(struct ap_run *run, const struct ap_graph *g)
{
	int64_t parts = run->opt->micro_batches;

	if (parts == 1)
		return AP_OK;
	if (!g->batch)
		return FAULT(run, "--micro-batches %" PRId64 ": no input of %s has a batch_dim", parts,
			g->file);
	if (g->batch % parts)
		return FAULT(run, "--micro-batches %" PRId64 " does not divide the batch of %" PRId64,
			parts, g->batch);
	return AP_OK;
}

enum ap_status ap_input_step(struct ap_run *run, const struct ap_json *doc,
	const struct ap_graph *g, struct ap_step *step)
{
	const struct ap_options *o = run->opt;
	const struct ap_route *route = ap_route_at((size_t)o->executor);

	*step = (struct ap_step)AP_STEP_DEFAULT;
	ap_settings_step(run->ctx.arena, o, step);
	if (step->training)
		AP_TRY(load_optimizer(run, doc, g, &step->optimizer));
	AP_TRY(check_micro_batches(run, g));
	return ap_software_get(&run->ctx, o->software ? o->software : route->software, &step->software);
}
