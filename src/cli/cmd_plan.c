/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "api/planning.h"
#include "api/relax.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/run.h"
#include "cli/stop.h"

static void write_json(const struct ap_devices *d, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 0);
	ap_jw_obj(&w);
	ap_jw_kint(&w, "min_devices", d->fits);
	ap_jw_kint(&w, "devices_per_server", d->server);
	ap_jw_kint(&w, "memory_bytes", d->memory_bytes);
	if (d->below) {
		ap_jw_kint(&w, "not_enough", d->below);
		ap_jw_kint(&w, "not_enough_bytes", d->below_bytes);
		ap_jw_kbool(&w, "proven", d->proven);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

static void write_text(const struct ap_devices *d, struct ap_str *out)
{
	char need[32];

	ap_str_addf(out, "%" PRId64 " device%s (%" PRId64 " a server): a plan of %s on each\n", d->fits,
		d->fits > 1 ? "s" : "", d->server, ap_format_bytes(d->memory_bytes, need));
	if (!d->below)
		return;
	ap_str_addf(out, "%" PRId64 " %s", d->below, d->proven ? "do not do: no strategy fits"
		: "probably do not do: no plan that fits was found");
	if (d->below_bytes)
		ap_str_addf(out, "; the smallest plan found needs %s",
			ap_format_bytes(d->below_bytes, need));
	ap_str_addc(out, '\n');
}

/* --min-devices, to standard output. */
static enum ap_status min_devices(struct ap_run *run, const struct ap_sources *src)
{
	struct ap_devices found;
	struct ap_str out;

	ap_ctx_phase(&run->ctx, "trying numbers of devices");
	AP_TRY(ap_min_devices(&run->ctx, run->set, src, &found));
	ap_str_init(&out, run->ctx.arena);
	if (run->set->json)
		write_json(&found, &out);
	else
		write_text(&found, &out);
	AP_TRY(ap_out_text(&run->to, out.s, out.len));
	return ap_out_commit(&run->to);
}

static enum ap_status plan(struct ap_run *run, unsigned use, const char *strategy)
{
	const struct ap_named named = ap_run_inputs(run, run->cli->arg[0], strategy);
	const struct ap_settings *set = run->set;
	struct ap_planning p;
	struct ap_sources src;
	const char *rest;
	enum ap_status st, written;

	if (set->time_limit > 0)
		ap_stop_after(set->time_limit);
	AP_TRY(ap_planning_check(&run->to, use, &p));
	AP_TRY(ap_sources_read(&run->ctx, set, &named, &src));
	if (set->time_limit == 0)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_LIMIT, NULL, NULL,
			"--time-limit 0 leaves no time for a plan");
	if (set->min_devices)
		return min_devices(run, &src);
	AP_TRY(ap_planning_begin(&run->to, &src, use, &p));
	st = ap_planning_make(&run->to, &src, use, &p);
	if (st != AP_OK && st != AP_STOPPED)
		return st;
	run->to.hurry = ap_stop_signal();
	written = ap_planning_write(&run->to, &p, &rest);
	fputs(rest, stderr);
	return written == AP_OK ? st : written;
}

enum ap_status ap_cmd_search(struct ap_run *run)
{
	return plan(run, AP_FOR_search, run->set->strategy_ckpt_load_file);
}

enum ap_status ap_cmd_evaluate(struct ap_run *run)
{
	return plan(run, AP_FOR_evaluate, run->set->strategy);
}
