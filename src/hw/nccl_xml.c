/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/nccl_xml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "base/xml.h"
#include "hw/device.h"
#include "hw/topo.h"

struct xml_device {
	const struct ap_xml *pci, *gpu; /* gpu NULL: known by its class alone */
	uint64_t bus; /* address */
	int64_t dev; /* as CUDA counts; -1: not said */
	double slot_Bps; /* 0: not said */
};

struct xml_card {
	const struct ap_xml *at; /* a <net>, or a <pci> of class "network" */
	double Bps; /* 0: not said */
	bool near; /* shares a switch with a device */
};

struct xml_reading {
	struct ap_ctx *ctx;
	const char *path;
	struct ap_server *server;
	AP_VEC(struct xml_device) device;
	AP_VEC(struct xml_card) card;
	bool any_class, any_gpu, any_net;
};

__attribute__((format(printf, 3, 4)))
static enum ap_status fault(const struct xml_reading *r, const struct ap_xml *x, const char *fmt, ...)
{
	const struct ap_where where = {.file = r->path, .line = x->line, .col = x->col};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(r->ctx->diag, AP_ERROR, AP_MEANING, &where, "topology-xml", fmt, ap);
	va_end(ap);
	return st;
}

static const char *get(const struct ap_xml *x, const char *name)
{
	const char *v = ap_xml_get(x, name);

	return v ? v : "";
}

static bool get_int(const struct ap_xml *x, const char *name, int64_t least, int64_t most, int64_t *out)
{
	return ap_parse_int(get(x, name), least, most, out);
}

static unsigned long get_hex(const struct ap_xml *x, const char *name)
{
	return strtoul(get(x, name), NULL, 16);
}

/* "0000:1b:00.0" as a number: its hexadecimal digits. */
static uint64_t bus_address(const char *s)
{
	uint64_t v = 0;

	for (; *s; s++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, *s);

		if (at)
			v = v * 16 + (uint64_t)((at - digits) % 16);
	}
	return v;
}

static bool is_device(const struct ap_xml *pci)
{
	const char *class = get(pci, "class");

	return ap_xml_child(pci, "gpu") || !strncmp(class, "0x03", 4) || !strncmp(class, "0x12", 4);
}

static bool is_card(const struct ap_xml *pci)
{
	return ap_xml_child(pci, "nic") || !strncmp(get(pci, "class"), "0x02", 4);
}

/* Rate of a slot as its speed and width say: "16 GT/s", "16.0 GT/s PCIe". 0 if they do not. */
static double slot_Bps(const struct ap_xml *pci)
{
	int64_t lanes = 0;
	char *end;
	double speed = ap_strtod(get(pci, "link_speed"), &end);

	if (!(speed > 0 && speed <= 1024) || strncmp(end, " GT/s", 5) != 0)
		return 0;
	if (!get_int(pci, "link_width", 1, 32, &lanes))
		lanes = 16;
	return speed * 1e9 * (double)lanes / 8;
}

/* The slowest slot between a device and its processor. */
static double way_Bps(const struct ap_xml *pci)
{
	double least = 0;

	for (; pci && !strcmp(pci->name, "pci"); pci = pci->parent) {
		double Bps = slot_Bps(pci);

		if (Bps > 0 && (!(least > 0) || Bps < least))
			least = Bps;
	}
	return least;
}

static bool has_device(const struct ap_xml *x)
{
	for (const struct ap_xml *c = x->first; c; c = c->next)
		if (!strcmp(c->name, "pci") && (is_device(c) || has_device(c)))
			return true;
	return false;
}

/* Adds the <net> of a <nic>: each is a port. */
static void add_nets(struct xml_reading *r, const struct ap_xml *nic, bool near)
{
	for (const struct ap_xml *net = nic->first; net; net = net->next) {
		int64_t mbps;
		struct xml_card card = {.at = net, .near = near};

		if (strcmp(net->name, "net") != 0)
			continue;
		r->any_net = true;
		if (get_int(net, "speed", 1, 100000000, &mbps))
			card.Bps = (double)mbps * 1e6 / 8;
		AP_PUSH(r->ctx->arena, r->card, card);
	}
}

static enum ap_status add_device(struct xml_reading *r, const struct ap_xml *pci)
{
	struct xml_device d = {.pci = pci, .gpu = ap_xml_child(pci, "gpu"),
		.bus = bus_address(get(pci, "busid")), .dev = -1, .slot_Bps = way_Bps(pci)};

	if (d.gpu)
		(void)get_int(d.gpu, "dev", 0, AP_MAX_DEVICES, &d.dev);
	r->any_gpu |= d.gpu != NULL;
	if (r->device.n == AP_MOST_SERVER_DEVICES)
		return ap_diag_add(r->ctx->diag, AP_ERROR, AP_LIMIT,
			&(struct ap_where){.file = r->path, .line = pci->line, .col = pci->col},
			"topology-xml",
			"a server has more than %d devices", AP_MOST_SERVER_DEVICES);
	AP_PUSH(r->ctx->arena, r->device, d);
	return AP_OK;
}

/* Gathers devices and cards in x, a processor or what hangs below it. */
static enum ap_status gather(struct xml_reading *r, const struct ap_xml *x)
{
	bool below_switch = !strcmp(x->name, "pci") && has_device(x);

	for (const struct ap_xml *c = x->first; c; c = c->next) {
		if (!strcmp(c->name, "nic"))
			add_nets(r, c, false);
		if (strcmp(c->name, "pci") != 0)
			continue;
		r->any_class |= *get(c, "class") != '\0';
		if (is_device(c)) {
			AP_TRY(add_device(r, c));
		} else if (is_card(c)) {
			const struct ap_xml *nic = ap_xml_child(c, "nic");
			struct xml_card card = {.at = c, .near = below_switch,
				.Bps = ap_card_Bps(get_hex(c, "vendor"), get_hex(c, "device"))};

			if (nic)
				add_nets(r, nic, below_switch);
			AP_PUSH(r->ctx->arena, r->card, card);
		} else {
			AP_TRY(gather(r, c));
		}
	}
	return AP_OK;
}

static int by_number(const void *a, const void *b)
{
	const struct xml_device *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	return x->pci->line != y->pci->line ? (x->pci->line < y->pci->line ? -1 : 1)
		: x->pci->col < y->pci->col ? -1 : x->pci->col > y->pci->col;
}

/* Where one has a <gpu>, devices are those that have. Numbers them as CUDA does: as dev says, else by
 * address. */
static enum ap_status order_devices(struct xml_reading *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->device.n; i++)
		if (r->device.v[i].gpu || !r->any_gpu)
			r->device.v[n++] = r->device.v[i];
	r->device.n = n;
	if (n)
		qsort(r->device.v, n, sizeof *r->device.v, by_number);
	for (size_t i = 1; i < n; i++) {
		const struct xml_device *a = &r->device.v[i - 1], *b = &r->device.v[i];

		if (b->dev >= 0 && a->dev == b->dev)
			return fault(r, b->gpu, "dev=\"%" PRId64 "\" is that of another device, too; "
				"a file describes one server", b->dev);
		if (a->bus == b->bus && *get(a->pci, "busid"))
			return fault(r, b->pci, "busid=\"%s\" is that of another device, too",
				ap_diag_name(r->ctx->diag, get(b->pci, "busid")));
	}
	return AP_OK;
}

/* The nearest that holds both: a switch, a processor or the system. */
static enum ap_near nearest(const struct ap_xml *a, const struct ap_xml *b)
{
	for (const struct ap_xml *x = a->parent; x; x = x->parent)
		for (const struct ap_xml *y = b->parent; y; y = y->parent)
			if (x == y)
				return !strcmp(x->name, "pci") ? AP_NEAR_SWITCH
					: !strcmp(x->name, "cpu") ? AP_NEAR_HOST : AP_NEAR_SYSTEM;
	return AP_NEAR_SYSTEM;
}

/* Links of device i: to switches, or to a device that is found by its address. */
static enum ap_status add_links(struct xml_reading *r, uint32_t i, uint16_t *links, int64_t *to_switches)
{
	static const char *const kinds[] = {"nvlink", "xgmi"};
	const struct xml_device *d = &r->device.v[i];
	uint32_t n = (uint32_t)r->device.n;

	*to_switches = 0;
	for (const struct ap_xml *x = d->gpu ? d->gpu->first : NULL; x; x = x->next) {
		const char *class = get(x, "tclass");
		bool is_switch = !strncmp(class, "0x068000", 8) || !strncmp(get(x, "target"), "fffffff:", 8);
		uint64_t target = bus_address(get(x, "target"));
		int64_t count = 0;

		for (size_t k = 0; k < AP_COUNT(kinds); k++)
			if (!strcmp(x->name, kinds[k])) {
				r->server->direct = kinds[k];
				if (!get_int(x, "count", 1, 1024, &count))
					return fault(r, x, "count is expected, from 1 to 1024");
			}
		if (is_switch)
			*to_switches += count;
		for (uint32_t k = 0; k < n && count && !is_switch; k++)
			if (k != i && r->device.v[k].bus == target)
				links[i * n + k] = (uint16_t)(links[i * n + k] + count > UINT16_MAX
					? UINT16_MAX
					: links[i * n + k] + count);
	}
	return AP_OK;
}

static enum ap_status join_devices(struct xml_reading *r)
{
	struct ap_server *s = r->server;
	uint32_t n = s->ndev;
	uint8_t *near = AP_NEW_N(r->ctx->arena, uint8_t, (size_t)n * n);
	uint16_t *links = AP_NEW_N(r->ctx->arena, uint16_t, (size_t)n * n);
	int64_t least = INT64_MAX, each;

	s->direct = r->any_gpu ? "nvlink" : NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct xml_device *d = &r->device.v[i];

		AP_TRY(add_links(r, i, links, &each));
		least = each < least ? each : least;
		if (d->slot_Bps > 0 && (!(s->pcie_Bps > 0) || d->slot_Bps < s->pcie_Bps))
			s->pcie_Bps = d->slot_Bps;
	}
	s->switch_links = (uint32_t)least;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++) {
			uint16_t *one = &links[i * n + k], *other = &links[k * n + i];

			*one = *other = *one < *other ? *one : *other; /* a link has two ends */
			near[i * n + k] = (uint8_t)(*one || (s->switch_links && i != k) ? AP_NEAR_LINK
				: nearest(r->device.v[i].pci, r->device.v[k].pci));
		}
	s->near = near;
	s->links = links;
	return AP_OK;
}

/* All devices are of one kind, which their PCI id or their generation names. */
static enum ap_status name_chip(struct xml_reading *r)
{
	for (size_t i = 0; i < r->device.n; i++) {
		const struct xml_device *d = &r->device.v[i], *first = r->device.v;
		unsigned long vendor = get_hex(d->pci, "vendor"), id = get_hex(d->pci, "device");
		const struct ap_device *row = ap_device_by_id(vendor, id);
		int64_t sm = 0;

		if (vendor != get_hex(first->pci, "vendor") || id != get_hex(first->pci, "device") ||
			strcmp(d->gpu ? get(d->gpu, "sm") : "", first->gpu ? get(first->gpu, "sm") : "") != 0)
			return fault(r, d->pci, "is a device of another kind than the first; a server "
				"has one kind");
		if (i)
			continue;
		if (d->gpu && vendor != 0x1002) /* AMD's numbers mean others */
			(void)get_int(d->gpu, "sm", 10, 999, &sm);
		r->server->generation = row ? row->generation : (int)sm;
		r->server->chip = row ? row->profile : "";
	}
	return AP_OK;
}

/* Rate from a processor to others: BDW_QPI_BW and so on of NCCL's topo.h. */
static double processor_Bps(const struct ap_xml *cpu)
{
	static const struct {
		const char *arch, *vendor;
		int64_t model; /* at least */
		double Bps;
	} rows[] = {
		{"x86_64", "GenuineIntel", 0xcf, 40e9},
		{"x86_64", "GenuineIntel", 0x8f, 22e9},
		{"x86_64", "GenuineIntel", 0x55, 10e9},
		{"x86_64", "GenuineIntel", 0, 6e9},
		{"x86_64", "AuthenticAMD", 0, 16e9},
		{"ppc64", "", 0, 32e9},
		{"", "", 0, 6e9},
	};
	int64_t model = 0;
	size_t i = 0;

	(void)get_int(cpu, "modelid", 0, INT32_MAX, &model);
	while (strncmp(get(cpu, "arch"), rows[i].arch, strlen(rows[i].arch)) != 0 ||
		strncmp(get(cpu, "vendor"), rows[i].vendor, strlen(rows[i].vendor)) != 0 ||
		model < rows[i].model)
		i++;
	return rows[i].Bps;
}

/* Cards are those that share a switch with a device, if any do; of these, ports that the file names
 * rather than slots. */
static void count_cards(struct xml_reading *r)
{
	bool any_near = false, all_said = true;
	double sum = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < r->card.n; i++) {
			const struct xml_card *c = &r->card.v[i];

			if (!strcmp(c->at->name, "net") != r->any_net)
				continue;
			if (!pass) {
				any_near |= c->near;
			} else if (c->near == any_near) {
				r->server->ncard++;
				all_said &= c->Bps > 0;
				sum += c->Bps;
			}
		}
	r->server->cards_Bps = all_said ? sum : 0;
}

static enum ap_status read_system(struct xml_reading *r, const struct ap_xml *system)
{
	const char *host = NULL;

	for (const struct ap_xml *cpu = system->first; cpu; cpu = cpu->next) {
		const char *of = get(cpu, "host_hash");

		if (strcmp(cpu->name, "cpu") != 0)
			continue;
		if (host && strcmp(of, host) != 0)
			return fault(r, cpu, "is a processor of another host (host_hash) than the "
				"first; expected one server: --device-num says how many there are");
		host = of;
		if (!(r->server->processor_Bps > 0))
			r->server->processor_Bps = processor_Bps(cpu);
		AP_TRY(gather(r, cpu));
	}
	AP_TRY(order_devices(r));
	if (!r->device.n && !r->any_class && host)
		return fault(r, system, "does not say which <pci> are devices: NCCL finds their classes on "
			"the machine itself; expected what it writes there with NCCL_TOPO_DUMP_FILE");
	if (!r->device.n)
		return fault(r, system, "holds no device: neither <gpu> nor a <pci> of class 0x03 (display) "
			"or 0x12 (accelerator)");
	return AP_OK;
}

enum ap_status ap_server_read_xml(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const struct ap_server **out)
{
	struct ap_server *server = AP_NEW(ctx->arena, struct ap_server);
	struct xml_reading r = {.ctx = ctx, .path = path, .server = server};
	const struct ap_xml *root = NULL;

	*server = (struct ap_server){.name = ap_file_base(path), .form = "NCCL XML", .chip = ""};
	AP_TRY(ap_xml_parse(ctx, path, text, len, &root));
	if (!strcmp(root->name, "graphs"))
		return fault(&r, root, "is a graph that NCCL searched (NCCL_GRAPH_DUMP_FILE), which "
			"says rings and trees, not links; expected the topology, NCCL_TOPO_DUMP_FILE");
	if (strcmp(root->name, "system") != 0)
		return fault(&r, root, "<%s> is no topology of NCCL; expected <system>",
			ap_diag_name(ctx->diag, root->name));
	AP_TRY(read_system(&r, root));
	server->ndev = (uint32_t)r.device.n;
	AP_TRY(name_chip(&r));
	AP_TRY(join_devices(&r));
	count_cards(&r);
	*out = server;
	return AP_OK;
}
