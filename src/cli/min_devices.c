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

#define MOST_SERVERS 8192
#define TRY_WORK (UINT64_C(1) << 32)

enum verdict { FITS, DOES_NOT, UNKNOWN };

struct trial { /* of one number of devices */
	int64_t devices;
	enum verdict verdict;
	int64_t memory_bytes; /* of the plan found, or of the smallest one met; 0: none */
	const char *why; /* it cannot be planned for; NULL */
};

struct asking {
	struct ap_run *run;
	const struct ap_sources *src;
	struct ap_options opt; /* device_num changes */
	int64_t server; /* devices of one */
	struct trial fits; /* the least that does; devices 0: none yet */
	struct trial below; /* the largest below it that does not; devices 0: none */
};

/* Proven where the exact search proves it. */
static enum verdict judge(struct ap_run *quiet, struct ap_inputs *in, struct trial *t)
{
	struct ap_plan plan;
	enum ap_status st;

	in->request.budget.work = TRY_WORK;
	if (ap_plan_lean(&quiet->ctx, &in->request, &plan)) {
		t->memory_bytes = plan.prediction.memory.total;
		return FITS;
	}
	t->memory_bytes = plan.graph ? plan.prediction.memory.total : 0;
	st = ap_drive_search(&quiet->ctx, &in->request, &plan, NULL);
	if (st == AP_OK)
		t->memory_bytes = plan.prediction.memory.total;
	return st == AP_OK ? FITS : st == AP_INFEASIBLE ? DOES_NOT : UNKNOWN;
}

static void ask(struct asking *a, int64_t devices, struct trial *t)
{
	struct ap_run quiet = *a->run;
	struct ap_inputs in;

	*t = (struct trial){.devices = devices, .verdict = UNKNOWN};
	a->opt.device_num = devices;
	quiet.opt = &a->opt;
	quiet.ctx.diag = ap_diag_create(a->run->ctx.arena, false);
	if (ap_inputs_make(&quiet, a->src, &in) != AP_OK) {
		t->why = "the settings do not go with it";
		return;
	}
	t->verdict = judge(&quiet, &in, t);
}

/* Notes the result; true: it fits. */
static bool try(struct asking *a, int64_t devices)
{
	struct trial t;

	ask(a, devices, &t);
	if (t.verdict == FITS)
		a->fits = t;
	else if (!t.why)
		a->below = t;
	return t.verdict == FITS;
}

/* Doubling from one device to one server to many; then between the last two numbers of servers. */
static void look(struct asking *a)
{
	int64_t lo = 0, hi;

	for (int64_t n = 1; n < a->server; n *= 2)
		if (try(a, n))
			return;
	for (hi = 1; hi <= MOST_SERVERS && !ap_ctx_stopped(&a->run->ctx); hi *= 2) {
		if (try(a, hi * a->server))
			break;
		lo = hi;
	}
	while (a->fits.devices && hi - lo > 1 && !ap_ctx_stopped(&a->run->ctx)) {
		int64_t mid = lo + (hi - lo) / 2;

		if (try(a, mid * a->server))
			hi = mid;
		else
			lo = mid;
	}
}

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static void write_json(const struct asking *a, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_init(&w, add_text, out, 0);
	ap_jw_obj(&w);
	ap_jw_kint(&w, "min_devices", a->fits.devices);
	ap_jw_kint(&w, "devices_per_server", a->server);
	ap_jw_kint(&w, "memory_bytes", a->fits.memory_bytes);
	if (a->below.devices) {
		ap_jw_kint(&w, "not_enough", a->below.devices);
		ap_jw_kbool(&w, "proven", a->below.verdict == DOES_NOT);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

static void write_text(const struct asking *a, struct ap_str *out)
{
	char need[32];

	ap_str_addf(out, "%" PRId64 " device%s (%" PRId64 " a server): a plan of %s each\n",
		a->fits.devices, a->fits.devices > 1 ? "s" : "", a->server,
		ap_format_bytes(a->fits.memory_bytes, need));
	if (!a->below.devices)
		return;
	ap_str_addf(out, "%" PRId64 " %s", a->below.devices, a->below.verdict == DOES_NOT
		? "do not do: no strategy fits" : "probably do not do: none was found");
	if (a->below.memory_bytes)
		ap_str_addf(out, ", the smallest plan found needs %s",
			ap_format_bytes(a->below.memory_bytes, need));
	ap_str_addc(out, '\n');
}

/* As the options, the rank table or the chip have it. */
static int64_t server_devices(const struct asking *a, const struct ap_chip *chip)
{
	if (a->opt.devices_per_server)
		return a->opt.devices_per_server;
	if (a->src->table)
		return (a->src->table->ndev + a->src->table->nserver - 1) / a->src->table->nserver;
	return chip->server_devices;
}

enum ap_status ap_relax_min_devices(struct ap_run *run, const struct ap_sources *src)
{
	struct ap_sources given = *src;
	struct asking a = {.run = run, .src = &given, .opt = *run->opt};
	const struct ap_chip *chip;
	struct ap_str out;

	AP_TRY(ap_input_chip(run, src, &chip));
	a.server = a.opt.devices_per_server = server_devices(&a, chip);
	if (!a.opt.chip)
		a.opt.chip = chip->name;
	given.table = NULL;
	ap_run_phase(run, "trying numbers of devices");
	look(&a);
	if (!a.fits.devices)
		return ap_diag_add(run->ctx.diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
			"no plan was found that fits on up to %" PRId64 " devices",
			MOST_SERVERS * a.server);
	ap_str_init(&out, run->ctx.arena);
	if (run->opt->json)
		write_json(&a, &out);
	else
		write_text(&a, &out);
	AP_TRY(ap_out_text(run, out.s, out.len));
	return ap_out_commit(run);
}
