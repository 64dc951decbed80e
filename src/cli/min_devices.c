/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/given.h"
#include "cli/outputs.h"
#include "cli/relax.h"
#include "cli/run.h"
#include "cli/stop.h"
#include "cli/trial.h"

#define MOST_DEVICES 65536

struct asking {
	struct ap_run *run;
	const struct ap_sources *src;
	struct ap_options opt; /* device_num changes */
	int64_t most;
	int64_t known; /* so many do not do, and fewer but one were not asked for */
	struct ap_allowance *left; /* NULL: no limit, and the exact search decides */
	struct ap_devices *out;
};

/* Notes the result; true: it fits, or nothing ever will. */
static bool try(struct asking *a, int64_t devices)
{
	struct ap_trial t;

	a->opt.device_num = devices;
	t = ap_trial_make(a->run, a->src, &a->opt, !a->left, a->left);
	if (t.verdict == AP_VERDICT_FITS) {
		a->out->fits = devices;
		a->out->memory_bytes = t.bytes;
	} else if (t.verdict != AP_VERDICT_NO_PLAN && !ap_ctx_stopped(&a->run->ctx)) {
		a->out->below = devices;
		a->out->below_bytes = t.bytes;
		a->out->proven = t.verdict == AP_VERDICT_PROVEN_NOT;
	}
	return t.verdict == AP_VERDICT_FITS || t.hopeless;
}

/* Doubling from one device to one server to many; then between the last two numbers of servers. */
static void look(struct asking *a)
{
	int64_t server = a->out->server, lo = 0, hi;

	for (int64_t n = 1; n < server; n *= 2)
		if (!(n > 1 && n <= a->known) && try(a, n))
			return;
	for (hi = 1; hi * server <= a->most && !ap_ctx_stopped(&a->run->ctx); hi *= 2) {
		if (hi * server > a->known && try(a, hi * server))
			break;
		lo = hi;
	}
	while (a->out->fits && hi - lo > 1 && !ap_ctx_stopped(&a->run->ctx)) {
		int64_t mid = lo + (hi - lo) / 2;

		if (try(a, mid * server))
			hi = mid;
		else
			lo = mid;
	}
}

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static void write_json(const struct ap_devices *d, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_init(&w, add_text, out, 0);
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

/* As the options, the rank table or the chip have it. */
static int64_t server_devices(const struct asking *a, const struct ap_chip *chip)
{
	const struct ap_topo *table = a->src->table;

	if (a->opt.devices_per_server)
		return a->opt.devices_per_server;
	return table ? (table->ndev + table->nserver - 1) / table->nserver : chip->server_devices;
}

enum ap_status ap_relax_devices(struct ap_run *run, const struct ap_sources *src, int64_t most,
	int64_t known, struct ap_allowance *left, struct ap_devices *out)
{
	struct ap_sources tableless = *src;
	struct asking a = {.run = run, .src = src, .opt = *run->opt, .most = most,
		.known = known, .left = left, .out = out};
	const struct ap_chip *chip;

	*out = (struct ap_devices){0};
	a.opt.min_devices = false; /* trials are plans */
	AP_TRY(ap_input_chip(run, src, &chip));
	out->server = a.opt.devices_per_server = server_devices(&a, chip);
	out->usable_bytes = a.opt.memory ? a.opt.memory : chip->usable_bytes;
	if (!a.opt.chip)
		a.opt.chip = chip->name;
	tableless.table = NULL;
	a.src = &tableless;
	look(&a);
	return AP_OK;
}

/* Nothing fits: why. Where no number of devices gave a plan, what one of them ends with says so. */
static enum ap_status explain(struct ap_run *run, const struct ap_sources *src,
	const struct ap_devices *d)
{
	struct ap_options o = *run->opt;
	struct ap_run loud = *run;
	const int32_t *const *counts;
	struct ap_inputs in;
	char need[32], have[32];

	if (d->below)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
			"no plan was found that fits: on %" PRId64 " device%s, the most that were tried, the "
			"smallest one needs %s, %s are usable", d->below, d->below > 1 ? "s" : "",
			ap_format_bytes(d->below_bytes, need), ap_format_bytes(d->usable_bytes, have));
	o.device_num = d->server;
	loud.opt = &o;
	AP_TRY(ap_inputs_make(&loud, src, &in));
	AP_TRY(ap_given_counts(&loud, &in, &counts));
	return ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"no plan was found on up to %d devices", MOST_DEVICES);
}

enum ap_status ap_relax_min_devices(struct ap_run *run, const struct ap_sources *src)
{
	struct ap_devices found;
	struct ap_str out;

	ap_run_phase(run, "trying numbers of devices");
	ap_stop_arm();
	AP_TRY(ap_relax_devices(run, src, MOST_DEVICES, 0, NULL, &found));
	if (ap_ctx_stopped(&run->ctx))
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_LIMIT, NULL, "limit",
			"stopped before the least number of devices was known");
	if (!found.fits)
		return explain(run, src, &found);
	ap_str_init(&out, run->ctx.arena);
	if (run->opt->json)
		write_json(&found, &out);
	else
		write_text(&found, &out);
	AP_TRY(ap_out_text(run, out.s, out.len));
	return ap_out_commit(run);
}
