/* SPDX-License-Identifier: Apache-2.0 */
/* All use of protobuf-c. Before it reads a file, a walk along the schema's descriptors locates and
 * reports what it accepts silently: missing required fields, strings with NUL or invalid UTF-8, bad
 * lengths, field number 0. */
#include "ckpt/ckpt_pb.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "ckpt/groups.h"
#include "node_strategy.pb-c.h"

typedef Mindspore__Straspb__ParallelStrategyMap pb_map;
typedef Mindspore__Straspb__ParallelStrategyItem pb_item;
typedef Mindspore__Straspb__ParallelStrategys pb_strategys;
typedef Mindspore__Straspb__ParallelStrategy pb_strategy;
typedef Mindspore__Straspb__ParallelLayoutItem pb_layout_item;
typedef Mindspore__Straspb__ParallelLayouts pb_layouts;
typedef Mindspore__Straspb__DevMatrix pb_dev_matrix;
typedef Mindspore__Straspb__TensorMap pb_tensor_map;
typedef Mindspore__Straspb__ParamSplitShape pb_split_shape;
typedef Mindspore__Straspb__IndicesOffset pb_offset;
typedef Mindspore__Straspb__ParallelGroupMap pb_group_map;
typedef Mindspore__Straspb__ParallelGroupItem pb_group;
typedef Mindspore__Straspb__ParallelGroupRanks pb_ranks;

enum { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_LENGTH = 2, WIRE_32BIT = 5 };

/* ---- writing ---- */

/* Makes a message whose only field, "dim", is a list of numbers of the schema's type. */
static void *make_list(struct ap_arena *a, const ProtobufCMessageDescriptor *d, const struct ap_ckpt_vec *v)
{
	const ProtobufCFieldDescriptor *f = d->fields;
	bool wide = f->type == PROTOBUF_C_TYPE_INT64;
	char *message = ap_arena_alloc(a, d->sizeof_message, 1);
	void *dim = ap_arena_alloc_raw(a, v->n, wide ? sizeof(int64_t) : sizeof(uint32_t));
	size_t n = v->n;

	protobuf_c_message_init(d, message);
	for (size_t i = 0; i < n; i++)
		if (wide)
			((int64_t *)dim)[i] = v->v[i];
		else
			((uint32_t *)dim)[i] = (uint32_t)v->v[i];
	memcpy(message + f->quantifier_offset, &n, sizeof n);
	memcpy(message + f->offset, &dim, sizeof dim);
	return message;
}

static void *make_lists(struct ap_arena *a, const ProtobufCMessageDescriptor *d, const struct ap_ckpt_vec *v,
	uint32_t n)
{
	void **list = AP_NEW_N(a, void *, n);

	for (uint32_t i = 0; i < n; i++)
		list[i] = make_list(a, d, &v[i]);
	return list;
}

static pb_item *make_item(struct ap_arena *a, const struct ap_ckpt_item *item)
{
	pb_item *m = AP_NEW(a, pb_item);
	pb_strategys *s = AP_NEW(a, pb_strategys);

	mindspore__straspb__parallel_strategy_item__init(m);
	mindspore__straspb__parallel_strategys__init(s);
	m->node_name = ap_arena_strdup(a, item->node_name);
	m->parallel_strategys = s;
	s->stage = item->stage;
	s->n_parallel_strategy = item->n;
	s->parallel_strategy = make_lists(a, &mindspore__straspb__parallel_strategy__descriptor,
		item->strategy, item->n);
	return m;
}

static pb_layout_item *make_layout_item(struct ap_arena *a, const struct ap_ckpt_layout *l)
{
	pb_layout_item *item = AP_NEW(a, pb_layout_item);
	pb_layouts *m = AP_NEW(a, pb_layouts);

	mindspore__straspb__parallel_layout_item__init(item);
	mindspore__straspb__parallel_layouts__init(m);
	item->param_name = ap_arena_strdup(a, l->param_name);
	item->parallel_layouts = m;
	/* exactly one message of each kind, even if empty: MindSpore's tools read element 0 */
	m->n_dev_matrix = m->n_param_split_shape = m->n_indices_offset = 1;
	m->dev_matrix = make_lists(a, &mindspore__straspb__dev_matrix__descriptor, &l->dev_matrix, 1);
	m->param_split_shape = make_lists(a, &mindspore__straspb__param_split_shape__descriptor,
		&l->param_split_shape, 1);
	m->indices_offset = make_lists(a, &mindspore__straspb__indices_offset__descriptor,
		&l->indices_offset, 1);
	m->n_tensor_map = l->nmap;
	m->tensor_map = make_lists(a, &mindspore__straspb__tensor_map__descriptor, l->tensor_map, l->nmap);
	m->field = l->field;
	m->opt_weight_shard_step = l->weight_step;
	m->opt_weight_shard_size = l->weight_size;
	return item;
}

static int by_stage(const void *a, const void *b)
{
	const struct ap_ckpt_item *x = a, *y = b;
	int order = (x->stage > y->stage) - (x->stage < y->stage);

	return order ? order : strcmp(x->node_name, y->node_name);
}

static int by_name_stage(const void *a, const void *b)
{
	const struct ap_ckpt_layout *x = a, *y = b;
	uint32_t s = 0, t = 0;
	bool one = ap_ckpt_name_stage(x->param_name, &s), two = ap_ckpt_name_stage(y->param_name, &t);

	return one && two && s != t ? (s > t) - (s < t) : strcmp(x->param_name, y->param_name);
}

/* Fills a merged file's messages in order of stages. */
static void fill_map(struct ap_arena *a, const struct ap_ckpt *c, pb_map *map)
{
	struct ap_ckpt_item *item = ap_arena_memdup(a, c->item, c->nitem * sizeof *item);
	struct ap_ckpt_layout *layout = ap_arena_memdup(a, c->layout, c->nlayout * sizeof *layout);

	if (c->nitem)
		qsort(item, c->nitem, sizeof *item, by_stage);
	if (c->nlayout)
		qsort(layout, c->nlayout, sizeof *layout, by_name_stage);
	map->current_stage = c->current_stage;
	map->n_parallel_strategy_item = c->nitem;
	map->parallel_strategy_item = AP_NEW_N(a, pb_item *, c->nitem);
	for (uint32_t i = 0; i < c->nitem; i++)
		map->parallel_strategy_item[i] = make_item(a, &item[i]);
	map->n_parallel_layout_item = c->nlayout;
	map->parallel_layout_item = AP_NEW_N(a, pb_layout_item *, c->nlayout);
	for (uint32_t i = 0; i < c->nlayout; i++)
		map->parallel_layout_item[i] = make_layout_item(a, &layout[i]);
}

/* Packs into one buffer: with a ProtobufCBuffer, protobuf-c sizes each message once per level. */
static void write_message(struct ap_arena *a, const ProtobufCMessage *m, ap_write_fn *write, void *user)
{
	uint8_t *bytes = ap_arena_alloc_raw(a, protobuf_c_message_get_packed_size(m), 1);

	write(user, (const char *)bytes, protobuf_c_message_pack(m, bytes));
}

void ap_ckpt_write_pb(struct ap_ctx *ctx, const struct ap_ckpt *c, ap_write_fn *write, void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	pb_map map;

	mindspore__straspb__parallel_strategy_map__init(&map);
	fill_map(ctx->scratch, c, &map);
	write_message(ctx->scratch, &map.base, write, user);
	ap_arena_release(ctx->scratch, mark);
}

static pb_ranks *make_ranks(struct ap_arena *a, const int64_t *rank, uint32_t n)
{
	return make_list(a, &mindspore__straspb__parallel_group_ranks__descriptor,
		&(struct ap_ckpt_vec){n, rank});
}

void ap_groups_write(struct ap_ctx *ctx, const struct ap_groups *g, ap_write_fn *write, void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	pb_group_map map;

	mindspore__straspb__parallel_group_map__init(&map);
	map.n_parallel_group_item = g->n;
	map.parallel_group_item = AP_NEW_N(ctx->scratch, pb_group *, g->n);
	for (uint32_t i = 0; i < g->n; i++) {
		pb_group *m = map.parallel_group_item[i] = AP_NEW(ctx->scratch, pb_group);

		mindspore__straspb__parallel_group_item__init(m);
		m->group_name = ap_arena_strdup(ctx->scratch, g->group[i].name);
		m->parallel_group_ranks = make_ranks(ctx->scratch, g->group[i].rank, g->group[i].n);
	}
	map.ckpt_restore_rank_list = make_ranks(ctx->scratch, g->restore, g->nrestore);
	write_message(ctx->scratch, &map.base, write, user);
	ap_arena_release(ctx->scratch, mark);
}

/* ---- reading: the walk before protobuf-c ---- */

struct walk {
	struct ap_ctx *ctx;
	const char *file;
	const char *kind; /* "strategy checkpoint" */
	const uint8_t *bytes;
	size_t unknown; /* fields not in the schema */
};

struct field {
	uint64_t number;
	unsigned wire;
	size_t start, end; /* of the value, after any length */
};

static enum ap_status broken(struct walk *w, size_t at, const char *what)
{
	struct ap_where where = {.file = w->file};

	return ap_diag_add(w->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
		"byte %zu: %s; no %s, or a damaged one", at, what, w->kind);
}

static bool read_varint(const uint8_t *bytes, size_t *at, size_t end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; *at < end && shift < 70; shift += 7) {
		uint8_t byte = bytes[(*at)++];

		if (shift == 63 && byte > 1)
			return false;
		*v |= (uint64_t)(byte & 0x7F) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static enum ap_status read_field(struct walk *w, size_t *at, size_t end, struct field *f)
{
	size_t before = *at;
	uint64_t tag, n = 0;

	if (!read_varint(w->bytes, at, end, &tag))
		return broken(w, before, "a number that does not end");
	f->number = tag >> 3;
	f->wire = tag & 7;
	if (!f->number || f->number >= UINT64_C(1) << 29)
		return broken(w, before, "a field number out of range");
	if (f->wire != WIRE_VARINT && f->wire != WIRE_64BIT && f->wire != WIRE_LENGTH &&
		f->wire != WIRE_32BIT)
		return broken(w, *at, "a field of an unknown wire type");
	before = *at;
	if ((f->wire == WIRE_VARINT || f->wire == WIRE_LENGTH) && !read_varint(w->bytes, at, end, &n))
		return broken(w, before, "a number that does not end");
	f->start = *at;
	if (f->wire != WIRE_LENGTH)
		n = f->wire == WIRE_VARINT ? 0 : f->wire == WIRE_64BIT ? 8 : 4;
	if (n > end - *at)
		return broken(w, *at, "a field that is longer than what is left");
	f->end = *at += (size_t)n;
	return AP_OK;
}

static enum ap_status walk_message(struct walk *w, const ProtobufCMessageDescriptor *d, size_t at,
	size_t end);

/* Checks the value of a known field; repeated numbers may be packed. */
static enum ap_status walk_field(struct walk *w, const ProtobufCFieldDescriptor *d,
	const struct field *f)
{
	bool text = d->type == PROTOBUF_C_TYPE_STRING, message = d->type == PROTOBUF_C_TYPE_MESSAGE;
	bool packed = f->wire == WIRE_LENGTH && d->label == PROTOBUF_C_LABEL_REPEATED;
	uint64_t v;

	if (text || message ? f->wire != WIRE_LENGTH : f->wire != WIRE_VARINT && !packed)
		return broken(w, f->start, "a field of the wrong type");
	if (text) {
		const char *s = (const char *)w->bytes + f->start;
		struct ap_where where = {.file = w->file};
		size_t len = f->end - f->start, bad;

		if (!ap_str_utf8(s, len, &bad))
			return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-name",
				"byte %zu: %s is not UTF-8", f->start + bad, d->name);
		if (memchr(s, 0, len))
			return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-name",
				"byte %zu: %s holds a NUL", f->start, d->name);
		return AP_OK;
	}
	if (message)
		return walk_message(w, d->descriptor, f->start, f->end);
	for (size_t at = f->start; packed && at < f->end;)
		if (!read_varint(w->bytes, &at, f->end, &v))
			return broken(w, f->start, "packed numbers that do not end");
	return AP_OK;
}

/* Checks a message. Depth is bounded: no message of the schema contains itself. */
static enum ap_status walk_message(struct walk *w, const ProtobufCMessageDescriptor *d, size_t at,
	size_t end)
{
	struct ap_where where = {.file = w->file};
	size_t begin = at;
	uint32_t seen = 0;

	while (at < end) {
		const ProtobufCFieldDescriptor *known;
		struct field f = {0};

		AP_TRY(read_field(w, &at, end, &f));
		known = protobuf_c_message_descriptor_get_field(d, (unsigned)f.number);
		if (!known) {
			w->unknown++;
			continue;
		}
		seen |= UINT32_C(1) << (known - d->fields);
		AP_TRY(walk_field(w, known, &f));
	}
	for (unsigned i = 0; i < d->n_fields; i++)
		if (d->fields[i].label == PROTOBUF_C_LABEL_REQUIRED && !(seen >> i & 1))
			return ap_diag_add(w->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
				"byte %zu: %s without its required %s", begin, d->short_name,
				d->fields[i].name);
	return AP_OK;
}

/* ---- reading: messages to checkpoint ---- */

/* The list in a message that make_list() makes. */
static struct ap_ckpt_vec take_list(struct ap_arena *a, const ProtobufCMessage *message)
{
	const ProtobufCFieldDescriptor *f = message->descriptor->fields;
	const void *dim;
	int64_t *v;
	size_t n;

	memcpy(&n, (const char *)message + f->quantifier_offset, sizeof n);
	memcpy(&dim, (const char *)message + f->offset, sizeof dim);
	v = ap_arena_alloc_raw(a, n, sizeof *v);
	for (size_t i = 0; i < n; i++)
		v[i] = f->type == PROTOBUF_C_TYPE_INT64 ? ((const int64_t *)dim)[i]
			: f->type == PROTOBUF_C_TYPE_INT32 ? ((const int32_t *)dim)[i]
							   : (int64_t)((const uint32_t *)dim)[i];
	return (struct ap_ckpt_vec){(uint32_t)n, v};
}

static struct ap_ckpt_item take_item(struct ap_arena *a, const pb_item *m)
{
	const pb_strategys *s = m->parallel_strategys;
	struct ap_ckpt_vec *strategy = AP_NEW_N(a, struct ap_ckpt_vec, s->n_parallel_strategy);

	for (size_t i = 0; i < s->n_parallel_strategy; i++)
		strategy[i] = take_list(a, &s->parallel_strategy[i]->base);
	return (struct ap_ckpt_item){
		.node_name = ap_arena_strdup(a, m->node_name),
		.stage = s->stage,
		.n = (uint32_t)s->n_parallel_strategy,
		.strategy = strategy,
	};
}

/* MindSpore's tools read the first dev_matrix and param_split_shape unchecked. */
static enum ap_status check_counts(struct walk *w, const pb_layout_item *item)
{
	const pb_layouts *m = item->parallel_layouts;
	struct ap_where where = {.file = w->file};

	if (m->n_dev_matrix == 1 && m->n_tensor_map && m->n_param_split_shape == 1 &&
		m->n_indices_offset <= 1)
		return AP_OK;
	return ap_diag_add(w->ctx->diag, AP_ERROR, AP_MEANING, &where, "ckpt-layout",
		"layout \"%s\": %zu dev_matrix, %zu tensor_map, %zu param_split_shape, %zu "
		"indices_offset; expected one of each",
		ap_diag_name(w->ctx->diag, item->param_name), m->n_dev_matrix, m->n_tensor_map,
		m->n_param_split_shape, m->n_indices_offset);
}

static struct ap_ckpt_layout take_layout(struct ap_arena *a, const pb_layout_item *item)
{
	const pb_layouts *m = item->parallel_layouts;
	struct ap_ckpt_vec *map = AP_NEW_N(a, struct ap_ckpt_vec, m->n_tensor_map);
	struct ap_ckpt_layout out = {
		.param_name = ap_arena_strdup(a, item->param_name),
		.dev_matrix = take_list(a, &m->dev_matrix[0]->base),
		.nmap = (uint32_t)m->n_tensor_map,
		.tensor_map = map,
		.param_split_shape = take_list(a, &m->param_split_shape[0]->base),
		.field = m->field,
		.weight_step = m->opt_weight_shard_step,
		.weight_size = m->opt_weight_shard_size,
	};

	for (size_t i = 0; i < m->n_tensor_map; i++)
		map[i] = take_list(a, &m->tensor_map[i]->base);
	if (m->n_indices_offset)
		out.indices_offset = take_list(a, &m->indices_offset[0]->base);
	return out;
}

static enum ap_status take_map(struct walk *w, const pb_map *m, struct ap_ckpt *out)
{
	struct ap_arena *a = w->ctx->arena;
	struct ap_ckpt_item *item = AP_NEW_N(a, struct ap_ckpt_item, m->n_parallel_strategy_item);
	struct ap_ckpt_layout *layout =
		AP_NEW_N(a, struct ap_ckpt_layout, m->n_parallel_layout_item);
	enum ap_status st = AP_OK, one;

	for (size_t i = 0; i < m->n_parallel_strategy_item; i++)
		item[i] = take_item(a, m->parallel_strategy_item[i]);
	for (size_t i = 0; i < m->n_parallel_layout_item; i++)
		if ((one = check_counts(w, m->parallel_layout_item[i])) != AP_OK)
			st = one;
		else
			layout[i] = take_layout(a, m->parallel_layout_item[i]);
	*out = (struct ap_ckpt){
		.file = ap_arena_strdup(a, w->file),
		.current_stage = m->current_stage,
		.nitem = (uint32_t)m->n_parallel_strategy_item,
		.item = item,
		.nlayout = (uint32_t)m->n_parallel_layout_item,
		.layout = layout,
	};
	return st;
}

/* protobuf-c allocates from the scratch arena, so nothing need be freed. */
static void *alloc(void *arena, size_t size)
{
	return ap_arena_alloc_raw(arena, size, 1);
}

static void free_nothing(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

/* Walks, then unpacks a message into scratch. */
static enum ap_status unpack(struct walk *w, const ProtobufCMessageDescriptor *root, size_t len,
	ProtobufCMessage **out)
{
	ProtobufCAllocator allocator = {alloc, free_nothing, w->ctx->scratch};

	AP_TRY(walk_message(w, root, 0, len));
	if (w->unknown)
		ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = w->file}, NULL,
			"%zu fields that a %s does not have are ignored", w->unknown, w->kind);
	*out = protobuf_c_message_unpack(root, &allocator, len, w->bytes);
	return *out ? AP_OK : broken(w, 0, "not what the schema says");
}

enum ap_status ap_ckpt_pb_parse(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_ckpt *out)
{
	struct walk w = {.ctx = ctx, .file = file, .kind = "strategy checkpoint",
		.bytes = (const uint8_t *)bytes};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	ProtobufCMessage *map;
	enum ap_status st;

	AP_TRY(unpack(&w, &mindspore__straspb__parallel_strategy_map__descriptor, len, &map));
	st = take_map(&w, (const pb_map *)map, out);
	ap_arena_release(ctx->scratch, mark);
	return st;
}

enum ap_status ap_groups_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_groups *out)
{
	struct walk w = {.ctx = ctx, .file = file, .kind = "group file",
		.bytes = (const uint8_t *)bytes};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_group_ranks *group;
	ProtobufCMessage *message;
	const pb_group_map *map;

	AP_TRY(unpack(&w, &mindspore__straspb__parallel_group_map__descriptor, len, &message));
	map = (const pb_group_map *)message;
	group = AP_NEW_N(ctx->arena, struct ap_group_ranks, map->n_parallel_group_item);
	for (size_t i = 0; i < map->n_parallel_group_item; i++) {
		const pb_group *item = map->parallel_group_item[i];

		group[i].name = ap_arena_strdup(ctx->arena, item->group_name);
		group[i].n = (uint32_t)item->parallel_group_ranks->n_dim;
		group[i].rank = take_list(ctx->arena, &item->parallel_group_ranks->base).v;
	}
	*out = (struct ap_groups){
		.n = (uint32_t)map->n_parallel_group_item,
		.group = group,
		.nrestore = (uint32_t)map->ckpt_restore_rank_list->n_dim,
		.restore = take_list(ctx->arena, &map->ckpt_restore_rank_list->base).v,
	};
	ap_arena_release(ctx->scratch, mark);
	return ap_groups_check(ctx, file, out);
}
