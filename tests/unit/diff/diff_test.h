/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files made for tests of the comparison: small, whole, every value at hand. */
#ifndef AP_TEST_DIFF_TEST_H
#define AP_TEST_DIFF_TEST_H

#include "diff/diff.h"
#include "diff/diff_write.h"
#include "planfile/plan_read.h"
#include "emit_test.h"

struct op_spec {
	const char *name, *type, *cut; /* cut: in_strategy, of JSON */
	const char *in, *out; /* lists of names, without brackets */
	const char *comms; /* list of JSON, without brackets */
};

struct plan_spec {
	const char *version, *work; /* "0.1.0", "7" where NULL */
	const char *step_time_s, *total_bytes;
	const char *settings; /* members */
	int micro_batches; /* 0: 1 */
	const struct op_spec *op;
	int nop;
	const char *moves, *params; /* lists */
};

static inline const char *or_else(const char *s, const char *otherwise)
{
	return s ? s : otherwise;
}

static inline void add_op(struct ap_str *s, const struct op_spec *op, bool first)
{
	ap_str_addf(s, "%s{\"name\":\"%s\",\"type\":\"%s\",\"cell\":\"\",\"stage\":0,",
		first ? "" : ",\n", op->name, op->type);
	ap_str_addf(s, "\"inputs\":[%s],\"outputs\":[%s],\"in_checkpoint\":%s,", or_else(op->in, ""),
		or_else(op->out, ""), strstr(or_else(op->in, ""), "\"w") ? "true" : "false");
	ap_str_addf(s, "\"in_strategy\":%s,\"out_strategy\":[],\"factors\":[],", op->cut);
	ap_str_addf(s, "\"recompute\":false,\"communications\":[%s]}", or_else(op->comms, ""));
}

static inline const char *plan_text(struct ap_ctx *ctx, const struct plan_spec *p)
{
	struct ap_str s = new_str(ctx);

	ap_str_addf(&s, "{\"schema\":\"autopar-plan/1\",\"tool\":{\"version\":\"%s\"},",
		or_else(p->version, "0.1.0"));
	ap_str_addf(&s, "\"inputs\":{\"graph\":{\"name\":\"g\",\"sha256\":\"00\"},"
		"\"rank_table\":null},\n\"settings\":{%s},", or_else(p->settings, ""));
	ap_str_add(&s, "\"graph\":{\"name\":\"g\",\"inputs\":[\"x\"],\"outputs\":[]},"
		"\"machine\":{\"devices\":8,\"chip\":\"c\",\"capacity_bytes\":1024,"
		"\"levels\":[{\"name\":\"link\",\"latency_s\":1e-6}]},\n");
	ap_str_addf(&s, "\"search\":{\"mode\":\"m\",\"status\":\"optimal\",\"complete\":true,"
		"\"objective_s\":1,\"lower_bound_s\":1,\"gap\":0,\"work\":%s},",
		or_else(p->work, "7"));
	ap_str_addf(&s, "\"prediction\":{\"step_time_s\":%s,\"compute_s\":1,"
		"\"communication_s\":1,\"exposed_communication_s\":1,"
		"\"memory\":[{\"stage\":0,\"total_bytes\":%s}]},\n",
		or_else(p->step_time_s, "1.5"), or_else(p->total_bytes, "1048576"));
	ap_str_addf(&s, "\"baselines\":[],\"stages\":[{\"micro_batches\":%d}],\n\"operators\":[",
		p->micro_batches ? p->micro_batches : 1);
	for (int i = 0; i < p->nop; i++)
		add_op(&s, &p->op[i], !i);
	ap_str_addf(&s, "],\n\"redistributions\":[%s],\n\"parameters\":[%s]}",
		or_else(p->moves, ""), or_else(p->params, ""));
	return s.s;
}

static inline enum ap_status read_text(struct ap_ctx *ctx, const char *text, struct ap_saved *out)
{
	struct ap_json *doc;
	enum ap_status st = ap_json_parse(ctx, "dir/p.json", text, strlen(text), 0, &doc);

	return st == AP_OK ? ap_saved_of_plan(ctx, doc, out) : st;
}

static inline void read_spec(struct ap_ctx *ctx, const struct plan_spec *p, struct ap_saved *out)
{
	ck_assert_int_eq(read_text(ctx, plan_text(ctx, p), out), AP_OK);
}

static inline void compare(struct ap_ctx *ctx, const struct plan_spec *was,
	const struct plan_spec *is, struct ap_diff *out)
{
	struct ap_saved a, b;

	read_spec(ctx, was, &a);
	read_spec(ctx, is, &b);
	ap_diff_make(ctx, &a, &b, out);
}

static inline const char *write_as(struct ap_ctx *ctx, const struct ap_diff *d, const char *form,
	bool color)
{
	const struct ap_diff_style style = {.color = color};
	struct ap_str s = new_str(ctx);
	size_t i = 0;

	while (strcmp(ap_diff_writer_at(i)->name, form) != 0)
		i++;
	ap_diff_writer_at(i)->write(ctx, d, &style, &s);
	return s.s;
}

#define PARAM(name, slice, shards) \
	"{\"name\":\"" name "\",\"dtype\":\"float32\",\"trainable\":true,\"dev_matrix\":[8]," \
	"\"tensor_map\":[0,-1],\"tensor_shape\":[64,32],\"slice_shape\":" slice "," \
	"\"optimizer_shards\":" shards ",\"opt_weight_shard_step\":0,\"opt_weight_shard_size\":0}"

#define COMM(kind, phase, bytes, size) \
	"{\"phase\":\"" phase "\",\"kind\":\"" kind "\",\"bytes\":" bytes ",\"axes\":[[1," size "]]}"

#define MOVE(to, operand, kind, size, bytes) \
	"{\"from\":null,\"to\":\"" to "\",\"operand\":" operand ",\"tensor\":\"x\"," \
	"\"from_layout\":[[8,1]],\"to_layout\":[[1,0]],\"bytes\":" bytes "," \
	"\"steps\":[{\"kind\":\"" kind "\",\"axis\":[1," size "]}]}"

#endif
