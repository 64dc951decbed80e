/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "cli/outputs.h"
#include "cli/relax.h"
#include "cli/run.h"
#include "plan/lean.h"

#define MOST_DEVICES 65536
#define TRY_WORK (UINT64_C(1) << 32) /* with a proof */
#define HASTY_WORK (UINT64_C(1) << 28)

enum verdict { FITS, DOES_NOT, UNKNOWN, NO_PLAN };

struct asking {
	struct ap_run *run;
	const struct ap_sources *src;
	struct ap_options opt; /* device_num changes */
	int64_t most;
	bool prove;
	struct ap_devices *out;
};

/* Proven where the exact search proves it. *bytes: of the plan found, or of the smallest one met. */
static enum verdict judge(struct ap_run *quiet, struct ap_inputs *in, bool prove, int64_t *bytes)
{
	struct ap_plan plan;
	enum ap_status st;
	bool fits;

	in->request.budget.work = prove ? TRY_WORK : HASTY_WORK;
	fits = ap_plan_lean(&quiet->ctx, &in->request, &plan);
	*bytes = plan.graph ? plan.prediction.memory.total : 0;
	if (fits || !prove)
		return fits ? FITS : UNKNOWN;
	st = ap_drive_search(&quiet->ctx, &in->request, &plan, NULL);
	if (st == AP_OK)
		*bytes = plan.prediction.memory.total;
	return st == AP_OK ? FITS : st == AP_INFEASIBLE ? DOES_NOT : UNKNOWN;
}

static enum verdict ask(struct asking *a, int64_t devices, int64_t *bytes)
{
	struct ap_run quiet = *a->run;
	struct ap_inputs in;

	a->opt.device_num = devices;
	quiet.opt = &a->opt;
	quiet.ctx.diag = ap_diag_create(a->run->ctx.arena, false);
	quiet.ctx.phase = NULL;
	return ap_inputs_make(&quiet, a->src, &in) == AP_OK ? judge(&quiet, &in, a->prove, bytes) : NO_PLAN;
}

/* Notes the result; true: it fits. */
static bool try(struct asking *a, int64_t devices)
{
	int64_t bytes = 0;
	enum verdict v = ask(a, devices, &bytes);

	if (v == FITS) {
		a->out->fits = devices;
		a->out->memory_bytes = bytes;
	} else if (v != NO_PLAN) {
		a->out->below = devices;
		a->out->below_bytes = bytes;
		a->out->proven = v == DOES_NOT;
	}
	return v == FITS;
}

/* Doubling from one device to one server to many; then between the last two numbers of servers. */
static void look(struct asking *a)
{
	int64_t server = a->out->server, lo = 0, hi;

	for (int64_t n = 1; n < server; n *= 2)
		if (try(a, n))
			return;
	for (hi = 1; hi * server <= a->most && !ap_ctx_stopped(&a->run->ctx); hi *= 2) {
		if (try(a, hi * server))
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
		ap_str_addf(out, ", the smallest plan found needs %s",
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
	bool prove, struct ap_devices *out)
{
	struct ap_sources given = *src;
	struct asking a = {.run = run, .src = src, .opt = *run->opt, .most = most,
		.prove = prove, .out = out};
	const struct ap_chip *chip;

	*out = (struct ap_devices){0};
	AP_TRY(ap_input_chip(run, src, &chip));
	out->server = a.opt.devices_per_server = server_devices(&a, chip);
	if (!a.opt.chip)
		a.opt.chip = chip->name;
	given.table = NULL;
	a.src = &given;
	look(&a);
	return AP_OK;
}

enum ap_status ap_relax_min_devices(struct ap_run *run, const struct ap_sources *src)
{
	struct ap_devices found;
	struct ap_str out;

	ap_run_phase(run, "trying numbers of devices");
	AP_TRY(ap_relax_devices(run, src, MOST_DEVICES, true, &found));
	if (!found.fits)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
			"no plan was found that fits on up to %d devices", MOST_DEVICES);
	ap_str_init(&out, run->ctx.arena);
	if (run->opt->json)
		write_json(&found, &out);
	else
		write_text(&found, &out);
	AP_TRY(ap_out_text(run, out.s, out.len));
	return ap_out_commit(run);
}
