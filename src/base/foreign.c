/* SPDX-License-Identifier: Apache-2.0 */
#include "base/foreign.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define MACHINE "it is read as RANK_TABLE and by --topology"
#define JSON "every input is JSON, but strategy checkpoints and dumps"

/* A line without indent and line end. */
struct line {
	const char *s;
	size_t len;
};

/* The next line that is not blank or a comment (first character in comments); advances *at. False
 * at the end. */
static bool next_line(const char **at, const char *end, const char *comments, struct line *out)
{
	while (*at < end) {
		const char *nl = memchr(*at, '\n', (size_t)(end - *at)), *stop = nl ? nl : end;
		const char *s = *at;

		*at = nl ? nl + 1 : end;
		while (s < stop && (*s == ' ' || *s == '\t'))
			s++;
		while (stop > s && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
			stop--;
		*out = (struct line){s, (size_t)(stop - s)};
		if (s < stop && !strchr(comments, *s))
			return true;
	}
	return false;
}

static size_t span(const char *s, const char *end, const char *set)
{
	size_t n = 0;

	while (s + n < end && s[n] && strchr(set, s[n]))
		n++;
	return n;
}

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* Name of the root element, after prolog and comments; NULL if not XML. */
static const char *root_of(struct ap_ctx *ctx, const char *s, const char *end)
{
	while (s < end && *s == '<') {
		const char *close = s + 1 < end && (s[1] == '?' || s[1] == '!')
			? memchr(s, '>', (size_t)(end - s)) : NULL;
		size_t n = span(s + 1, end, LETTERS DIGITS "_-:");

		if (!close)
			return n ? ap_arena_strndup(ctx->arena, s + 1, n) : NULL;
		if (begins(s, (size_t)(end - s), "<!--")) /* a comment may contain '>' */
			for (close = s + 6; close < end && memcmp(close - 2, "-->", 3); close++)
				;
		s = close < end ? close + 1 : end;
		s += span(s, end, " \t\r\n");
	}
	return NULL;
}

static const char *see_nccl(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *root = root_of(ctx, text + span(text, end, " \t\r\n"), end);

	if (!root || (strcmp(root, "system") && strcmp(root, "graphs")))
		return NULL;
	return ap_arena_printf(ctx->arena, "is XML of NCCL (<%s>), which describes a server; " MACHINE, root);
}

static const char *see_xml(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *root = root_of(ctx, text + span(text, end, " \t\r\n"), end);

	if (!root)
		return NULL;
	if (strstr(root, "topo"))
		return ap_arena_printf(ctx->arena, "is XML, a topology (<%s>), but not NCCL's; "
			"expected what NCCL writes with NCCL_TOPO_DUMP_FILE, or a rank "
			"table", root);
	return ap_arena_printf(ctx->arena, "is XML (<%s>); " JSON, root);
}

/* Skips blanks, and what colours text on a terminal (ESC [ .. m). */
static const char *skip_colour(const char *s, const char *end)
{
	for (;;) {
		s += span(s, end, " \t");
		if (s == end || *s != '\x1b')
			return s;
		s += 1 + span(s + 1, end, "[;" DIGITS);
		s += s < end;
	}
}

/* Recognizes the head of a matrix of devices, printed by nvidia-smi topo -m or npu-smi info -t topo,
 * which may stand below other output: "GPU0 GPU1", "GPU0 CPU Affinity". */
static const char *see_matrix(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const char *const kinds[] = {"GPU", "NPU"};
	const char *at = text;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "", &l)) {
		const char *stop = l.s + l.len, *s = skip_colour(l.s, stop), *next;

		for (size_t i = 0; i < AP_COUNT(kinds); i++) {
			if (!begins(s, (size_t)(stop - s), kinds[i]) || s + 3 == stop || s[3] != '0')
				continue;
			next = skip_colour(s + 4, stop);
			if (next > s + 4 && (begins(next, (size_t)(stop - next), kinds[i]) ||
				begins(next, (size_t)(stop - next), "CPU") ||
				begins(next, (size_t)(stop - next), "NIC") ||
				begins(next, (size_t)(stop - next), "mlx")))
				return "is a matrix of links, as nvidia-smi topo and npu-smi print it, "
					"which describes a server; " MACHINE;
		}
	}
	return NULL;
}

static const char *see_addresses(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#", &l))
		if (begins(l.s, l.len, "address_"))
			return "is an hccn.conf, the addresses of the devices of one server; expected the "
				"rank table in JSON that hccl_tools.py makes of it";
		else if (!span(l.s, l.s + l.len, LETTERS) || !memchr(l.s, '=', l.len))
			return NULL;
	return NULL;
}

static bool is_section(const struct line *l)
{
	return l->len > 2 && l->s[0] == '[' && l->s[l->len - 1] == ']' &&
		span(l->s + 1, l->s + l->len, LETTERS) &&
		span(l->s + 1, l->s + l->len, LETTERS DIGITS " ._-") == l->len - 2;
}

/* Recognizes "[section]", "key = value". */
static const char *see_ini(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	bool any = false;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#;", &l)) {
		size_t key = span(l.s, l.s + l.len, LETTERS DIGITS "_.-");
		size_t gap = key + span(l.s + key, l.s + l.len, " \t");

		if (!is_section(&l) && (!key || gap == l.len || l.s[gap] != '='))
			return NULL;
		any |= !is_section(&l);
	}
	return any ? "is a list of settings as in INI or TOML files (key = value); " JSON
		", settings of --config too" : NULL;
}

/* Recognizes a line of a list of hosts: "node1 slots=8 max_slots=8", "node1:8", "node[01-16],login", the
 * numbers of slots "8(x15),4", and what env prints of Slurm. *told: it has slots. */
static bool is_hosts(const struct line *l, bool *told)
{
	const char *end = l->s + l->len, *s = l->s;
	size_t name = span(s, end, LETTERS DIGITS "_.-[],*");
	bool slurm = begins(s, l->len, "SLURM_") || begins(s, l->len, "export SLURM_");

	*told = slurm || (name && span(s, end, DIGITS "(x),") == l->len);
	if (*told)
		return !slurm || memchr(s, '=', l->len);
	s += name;
	if (!name || (s < end && *s == '=') || !span(l->s, end, LETTERS DIGITS))
		return false;
	while (s < end && *s == ':') { /* and further hosts behind a comma */
		size_t n = span(s + 1, end, DIGITS);

		if (!n)
			return false;
		s += 1 + n;
		*told = true;
		if (s < end && *s == ',')
			s += span(s, end, LETTERS DIGITS "_.-[],*");
	}
	for (s += span(s, end, " \t"); s < end && *s != '#'; s += span(s, end, " \t")) {
		size_t key = span(s, end, LETTERS "_-");

		if (!key || s + key == end || s[key] != '=')
			return false;
		*told |= begins(s, (size_t)(end - s), "slots=");
		while (s < end && *s != ' ' && *s != '\t')
			s++;
	}
	return true;
}

static const char *see_hosts(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	bool any = false, told = false, numbered = true, line;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#", &l)) {
		if (!is_hosts(&l, &line))
			return NULL;
		any = true;
		told |= line;
		numbered &= span(l.s, l.s + l.len, LETTERS "_-") < l.len; /* a lone word is no host */
	}
	return !any || (!told && !numbered) ? NULL
		: "is a hostfile, of MPI, DeepSpeed or Slurm, which says the servers of a machine; " MACHINE;
}

/* Recognizes "---", "key:", "- item". */
static const char *see_yaml(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const char yaml[] = "is YAML; " JSON "; of YAML that of MindFormers alone is read "
		"(parallel_config, runner_config), by --config";
	const char *at = text;
	struct line l;
	size_t key;

	(void)ctx;
	if (!next_line(&at, end, "#", &l))
		return NULL;
	if (begins(l.s, l.len, "---") || begins(l.s, l.len, "- "))
		return yaml;
	key = span(l.s, l.s + l.len, LETTERS DIGITS "_.-");
	if (!key || key == l.len || l.s[key] != ':' || (key + 1 < l.len && l.s[key + 1] != ' '))
		return NULL;
	return yaml;
}

static const char *see_packed(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const struct {
		const char *head, *what;
	} rows[] = {{"\x1f\x8b", "gzip"}, {"PK\x03\x04", "zip"}, {"\xfd" "7zXZ", "xz"}, {"BZh", "bzip2"},
		{"\x28\xb5\x2f\xfd", "zstd"}};

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (begins(text, (size_t)(end - text), rows[i].head))
			return ap_arena_printf(ctx->arena, "is packed by %s; expected what is in it",
				rows[i].what);
	return NULL;
}

#define ONNX_RECIPE "export the network to ONNX without its weights, as docs/onnx.md shows, and import that"
#define CONFIG_RECIPE "import reads the config.json beside it"

/* The name of the first file in a zip archive; "" if it is cut. */
static bool zip_begins_with(const char *text, size_t len, const char *word)
{
	enum { HEAD = 30, NAME_LENGTH = 26 };
	size_t name = len < HEAD
		? 0
		: (unsigned char)text[NAME_LENGTH] | (size_t)(unsigned char)text[NAME_LENGTH + 1] << 8;

	for (size_t i = HEAD; i + strlen(word) <= len && i + strlen(word) <= HEAD + name; i++)
		if (!memcmp(text + i, word, strlen(word)))
			return true;
	return false;
}

static bool is_torch(const char *text, size_t len)
{
	static const char *const first[] = {"data.pkl", ".format_version", "byteorder", ".storage_alignment",
		"archive/", "version", "serialized_exported_program", "models/"};

	for (size_t i = 0; begins(text, len, "PK\x03\x04") && i < AP_COUNT(first); i++)
		if (zip_begins_with(text, len, first[i]))
			return true;
	return false;
}

static bool is_keras(const char *text, size_t len)
{
	return begins(text, len, "PK\x03\x04") && zip_begins_with(text, len, "metadata.json");
}

static bool is_numpy(const char *text, size_t len)
{
	return begins(text, len, "\x93NUMPY") ||
		(begins(text, len, "PK\x03\x04") && zip_begins_with(text, len, ".npy"));
}

static bool is_pickle(const char *text, size_t len)
{
	return len > 2 && (unsigned char)text[0] == 0x80 && text[1] >= 2 && text[1] <= 5;
}

/* The length of a header in JSON, then that. */
static bool is_safetensors(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < 8 && i < len; i++)
		n |= (uint64_t)(unsigned char)text[i] << (8 * i);
	return len > 9 && n > 1 && n < UINT64_C(1) << 32 && text[8] == '{' &&
		(text[9] == '"' || text[9] == '}');
}

static bool is_gguf(const char *text, size_t len)
{
	return begins(text, len, "GGUF") || begins(text, len, "lmgg") || begins(text, len, "tjgg");
}

static bool is_hdf5(const char *text, size_t len)
{
	return begins(text, len, "\x89HDF\r\n\x1a\n");
}

static bool is_tflite(const char *text, size_t len)
{
	return len >= 8 && !memcmp(text + 4, "TFL3", 4);
}

/* Behind a length of one or two bytes. */
static size_t past_length(const char *text, size_t len, size_t at)
{
	while (at < len && (unsigned char)text[at] >= 0x80)
		at++;
	return at + 1;
}

/* A version of a schema, then a graph that begins with what it says of itself. */
static bool is_saved_model(const char *text, size_t len)
{
	size_t at = past_length(text, len, 3);

	if (!begins(text, len, "\x08\x01\x12") || at >= len || text[at] != 0x0a)
		return false;
	at = past_length(text, len, at + 1);
	return at < len && (text[at] == 0x12 || text[at] == 0x22);
}

/* A version as text, then the program's name. */
static bool is_mindir(const char *text, size_t len)
{
	size_t version = len > 2 ? (unsigned char)text[1] : 0;

	return len > 4 + version && text[0] == 0x0a && version > 2 && version < 16 &&
		text[2] && strchr(DIGITS, text[2]) && text[3] == '.' && text[2 + version] == 0x12 &&
		len > 13 + version && !memcmp(text + 4 + version, "MindSpore", 9);
}

/* Entries of a name and a tensor, whose type is a word. */
static bool is_mindspore_ckpt(const char *text, size_t len)
{
	static const char *const types[] = {"\x12\x07" "Float32", "\x12\x07" "Float16", "\x12\x08" "BFloat16",
		"\x12\x05" "Int32", "\x12\x05" "Int64"};

	for (size_t i = 0; len > 2 && text[0] == 0x0a && i < AP_COUNT(types); i++)
		for (size_t at = 2; at + strlen(types[i]) <= len; at++)
			if (!memcmp(text + at, types[i], strlen(types[i])))
				return true;
	return false;
}

const char *ap_foreign_model(const char *text, size_t len)
{
	static const struct {
		bool (*is)(const char *text, size_t len);
		const char *what;
	} models[] = {
		{is_torch, "is a file of torch (.pt, .pt2), whose program is Python's; " ONNX_RECIPE},
		{is_keras, "is a model of Keras; " ONNX_RECIPE},
		{is_numpy, "holds arrays of NumPy, and no network; " ONNX_RECIPE},
		{is_pickle,
			"is a pickle of Python, as older versions of torch save models, which only Python "
			"reads; " ONNX_RECIPE},
		{is_safetensors,
			"is safetensors, weights without their network; " CONFIG_RECIPE
			"; or " ONNX_RECIPE},
		{is_gguf,
			"is GGUF, weights for llama.cpp without their network; " CONFIG_RECIPE
			" from which it was converted"},
		{is_hdf5, "is HDF5, as Keras saves models; " ONNX_RECIPE},
		{is_tflite, "is a model of TensorFlow Lite, for inference on small devices; " ONNX_RECIPE},
		{is_saved_model,
			"is a SavedModel of TensorFlow; convert it to ONNX by tf2onnx (python3 -m "
			"tf2onnx.convert --saved-model FOLDER --output net.onnx), and import that"},
		{is_mindir,
			"is MindIR; run the network once with MS_DEV_SAVE_GRAPHS=1 in the environment, and "
			"import the NN_pre_auto_parallel_IIII.ir that it writes"},
		{is_mindspore_ckpt,
			"is a checkpoint of MindSpore, weights without their network; import a dump of "
			"the network, which MS_DEV_SAVE_GRAPHS=1 in the environment has written"},
	};

	for (size_t i = 0; i < AP_COUNT(models); i++)
		if (models[i].is(text, len))
			return models[i].what;
	return NULL;
}

/* The first match counts. */
static const struct row {
	const char *(*see)(struct ap_ctx *ctx, const char *text, const char *end);
	bool binary; /* control characters do not rule it out */
	enum ap_machine_text machine;
} rows[] = {
	{see_packed, true, AP_TEXT_OTHER},
	{see_nccl, true, AP_TEXT_NCCL_XML},
	{see_xml, false, AP_TEXT_OTHER},
	{see_matrix, false, AP_TEXT_LINK_MATRIX},
	{see_addresses, false, AP_TEXT_OTHER},
	{see_hosts, false, AP_TEXT_HOSTS},
	{see_ini, false, AP_TEXT_OTHER},
	{see_yaml, false, AP_TEXT_OTHER},
};

/* The row of a text and what it says; NULL if there is none. */
static const struct row *find_row(struct ap_ctx *ctx, const char *text, size_t len, const char **what)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *end = text + len;
	bool text_only = true;

	*what = NULL;
	if (begins(text, len, mark))
		text += strlen(mark);
	for (const char *s = text; s < end && text_only; s++)
		text_only = (unsigned char)*s >= 0x20 || *s == '\t' || *s == '\n' || *s == '\r' ||
			*s == '\x1b';
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		if (rows[i].binary || text_only)
			*what = rows[i].see(ctx, text, end);
		if (*what)
			return &rows[i];
	}
	return NULL;
}

const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len)
{
	const char *what;

	(void)find_row(ctx, text, len, &what);
	return what;
}

enum ap_machine_text ap_foreign_machine(struct ap_ctx *ctx, const char *text, size_t len)
{
	const char *what;
	const struct row *row = find_row(ctx, text, len, &what);

	return row ? row->machine : AP_TEXT_OTHER;
}
