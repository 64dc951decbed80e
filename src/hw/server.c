/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/server.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "hw/constant.h"
#include "hw/device.h"
#include "hw/profile_write.h"

/* NCCL's constants for what neither file nor profile gives: PCI_BW is three quarters of PCIe 3.0 x16, NET_BW
 * a card of 100 Gb/s; latencies are the tuner's of a ring, Simple protocol. */
static const double pcie_Bps = 16e9, pcie_share = 0.75, pcie_latency_s = 5.7e-6;
static const double card_Bps = 12.5e9, link_latency_s = 3.4e-6;

enum { DEFAULT_GENERATION = 80, MOST_LINKS = 18 };

/* A chip that gets a server's links. */
struct joining {
	struct ap_ctx *ctx;
	const struct ap_server *server;
	const struct ap_chip *was;
	struct ap_chip *chip;
	uint32_t span; /* devices in a block of the levels so far; 1 before the first */
	int room; /* levels that may still be added inside servers */
};

static enum ap_status say(const struct joining *j, enum ap_level level, const char *check, const char *text)
{
	return ap_diag_add(j->ctx->diag, level, AP_MEANING, &(struct ap_where){.file = j->server->name},
		check,
		"%s", text);
}

/* A level inside servers, or (a pod's links are those of its servers) of pods. */
static const struct ap_link_level *own_level(const struct ap_chip *chip, const char *name)
{
	for (int l = 0; l < chip->nlevel; l++)
		if (chip->level[l].within <= AP_WITHIN_POD && !strcmp(chip->level[l].name, name))
			return &chip->level[l];
	return NULL;
}

/* GB/s as text, in any locale. */
static const char *in_GBps(const struct joining *j, double Bps)
{
	char text[32];

	return ap_arena_strdup(j->ctx->arena, ap_format_double(Bps / 1e9, text));
}

/* False where a profile of many levels leaves no room: what the next one joins is then left to it. */
static bool add_level(struct joining *j, const struct ap_link_level *level, uint32_t span)
{
	struct ap_link_level *to;

	if (!j->room)
		return false;
	j->room--;
	to = &j->chip->level[j->chip->nlevel++];
	*to = *level;
	to->within = AP_WITHIN_SERVER;
	to->span = span < j->server->ndev ? span : 0;
	j->span = span;
	return true;
}

/* The same with what the file says of it, which is its numbers' source. */
static void add_stated(struct joining *j, const struct ap_link_level *level, uint32_t span, const char *what)
{
	struct ap_arena *arena = j->ctx->arena;
	const char *text = ap_arena_printf(arena, "%s, %s: %s", j->server->name, j->server->form, what);

	if (!add_level(j, level, span))
		return;
	j->chip->sources = ap_sources_with(arena, j->chip->sources,
		ap_arena_printf(arena, "levels.%s.bandwidth_Bps", level->name), text);
	j->chip->sources = ap_sources_with(arena, j->chip->sources,
		ap_arena_printf(arena, "levels.%s.span", level->name), text);
	if (level->nlinks)
		j->chip->sources = ap_sources_with(arena, j->chip->sources,
			ap_arena_printf(arena, "levels.%s.links", level->name), text);
	if (own_level(j->was, level->name))
		return;
	j->chip->sources = ap_sources_with(arena, j->chip->sources,
		ap_arena_printf(arena, "levels.%s.latency_s", level->name),
		"NCCL's tuner constants, Simple protocol");
	j->chip->sources = ap_sources_with(arena, j->chip->sources,
		ap_arena_printf(arena, "levels.%s.efficiency", level->name),
		"what NCCL's constants count on, of the rate of the link");
}

/* The most devices s, a multiple of those in a block so far, so that every s consecutive ones reach each
 * other over pairs that are at least so near. */
static uint32_t span_of(const struct joining *j, enum ap_near most)
{
	const struct ap_server *server = j->server;
	uint32_t n = server->ndev, s;
	struct ap_mark mark = ap_arena_mark(j->ctx->scratch);
	uint32_t *part = AP_NEW_N(j->ctx->scratch, uint32_t, n); /* the lowest device that is reached */

	for (uint32_t i = 0; i < n; i++)
		part[i] = i;
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; k < n; k++)
				if (server->near[i * n + k] <= most && part[k] < part[i]) {
					part[i] = part[k];
					more = true;
				}
	}
	for (s = n - n % j->span; s > j->span; s -= j->span) {
		uint32_t i = 0;

		while (i < n && part[i] == part[i / s * s])
			i++;
		if (i == n)
			break;
	}
	ap_arena_release(j->ctx->scratch, mark);
	return s;
}

static bool has_near(const struct ap_server *server, enum ap_near near)
{
	uint32_t n = server->ndev;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < i; k++)
			if (server->near[i * n + k] == near)
				return true;
	return false;
}

/* Links of a device to others of its block of g consecutive ones, of the device that has the fewest. */
static uint32_t fewest_links(const struct ap_server *server, uint32_t g)
{
	uint32_t n = server->ndev, fewest = UINT32_MAX;

	for (uint32_t i = 0; i < n - n % g; i++) {
		uint32_t sum = 0;

		for (uint32_t k = i / g * g; k < i / g * g + g; k++)
			sum += k == i ? 0 : server->links[i * n + k];
		fewest = sum < fewest ? sum : fewest;
	}
	return fewest;
}

/* Links to switches: said, or more than a device can have to all others. */
static uint32_t switch_links(const struct ap_server *server, uint32_t most)
{
	uint32_t n = server->ndev, sum = 0, least = UINT32_MAX;

	if (server->switch_links)
		return server->switch_links;
	for (uint32_t k = 1; k < n; k++) {
		sum += server->links[k];
		least = server->links[k] < least ? server->links[k] : least;
	}
	return sum > most ? least : 0;
}

/* Do all pairs of a block of s consecutive devices have equally many links? */
static bool is_even(const struct ap_server *server, uint32_t s)
{
	uint32_t n = server->ndev;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = i / s * s; k < n && k < i / s * s + s; k++)
			if (k != i && server->links[i * n + k] != server->links[1])
				return false;
	return server->links[1] > 0;
}

/*
 * A mesh of the links between devices of a block. Where pairs have other numbers of links, groups that divide
 * it use as many as the device with the fewest has in such a group; others, what the next smaller of
 * these do. Where a device has none, what PCIe carries counts as a part of one.
 */
static void make_mesh(const struct joining *j, uint32_t span, struct ap_link_level *level)
{
	double none = fmin(1, pcie_Bps * pcie_share / (level->bandwidth_Bps * level->efficiency));
	double *links = AP_NEW_N(j->ctx->arena, double, span - 1), few = none;

	level->kind = AP_LINK_MESH;
	if (is_even(j->server, span)) {
		level->bandwidth_Bps *= j->server->links[1];
		return;
	}
	level->links = links;
	level->nlinks = (int)span - 1;
	for (uint32_t g = 2; g <= span; g++) {
		uint32_t in = span % g ? 0 : fewest_links(j->server, g);

		few = fmax(few, in);
		links[g - 2] = few;
	}
}

/* Links of the devices' own, of which the file says all. */
static enum ap_status join_links(struct joining *j)
{
	const struct ap_server *server = j->server;
	const struct ap_link_level *own = own_level(j->was, server->direct);
	const struct ap_device *device = ap_device_of_profile(j->was->name);
	const struct ap_generation *g = ap_generation_of(server->generation ? server->generation
		: device ? device->generation : DEFAULT_GENERATION);
	uint32_t to_switch, span = server->switch_links ? server->ndev : span_of(j, AP_NEAR_LINK);
	struct ap_link_level level = {.name = server->direct};
	const char *what;

	if (!g)
		g = ap_generation_of(DEFAULT_GENERATION);
	if (span < 2)
		return !has_near(server, AP_NEAR_LINK) ? AP_OK : say(j, AP_WARNING, "topology-links",
			ap_arena_printf(j->ctx->arena, "%s joins devices that are not consecutive, and "
				"groups of consecutive ones are planned: these links are left out",
				server->direct));
	level.bandwidth_Bps = g->link_Bps;
	level.latency_s = own ? own->latency_s : link_latency_s;
	level.efficiency = own ? own->efficiency : g->share;
	to_switch = switch_links(server, g->most_links ? g->most_links : MOST_LINKS);
	if (to_switch) {
		level.kind = AP_LINK_SWITCH;
		level.bandwidth_Bps *= to_switch;
		what = ap_arena_printf(j->ctx->arena,
			"%" PRIu32 " links of %s GB/s of each device to switches", to_switch,
			in_GBps(j, g->link_Bps));
	} else {
		make_mesh(j, span, &level);
		what = ap_arena_printf(j->ctx->arena, "links of %s GB/s between devices",
			in_GBps(j, g->link_Bps));
	}
	if (own && own->within == AP_WITHIN_POD)
		j->span = span; /* the pod's links join the server's devices, too */
	else
		add_stated(j, &level, span, what);
	return AP_OK;
}

/* Levels of the profile inside servers, up to `last` (NULL: all but PCIe), which joins as many as the file
 * says. */
static void keep_levels(struct joining *j, const struct ap_link_level *last, uint32_t span)
{
	const struct ap_chip *was = j->was;
	uint32_t n = j->server->ndev;
	int l = 0;

	for (; l < was->nlevel && was->level[l].within == AP_WITHIN_SERVER; l++) {
		const struct ap_link_level *level = &was->level[l];
		uint32_t holds = level == last ? span : level->span && level->span < n ? level->span : n;

		if (strcmp(level->name, "pcie") != 0 && holds > j->span && holds % j->span == 0)
			(void)add_level(j, level, holds);
		if (level == last)
			return;
	}
	if (l < was->nlevel && was->level[l].within == AP_WITHIN_POD)
		j->span = n; /* the pod's links join the server's devices, too */
}

/* PCIe, with its switches, and the links between processors, for what is not joined so far. */
static void join_pcie(struct joining *j)
{
	const struct ap_server *server = j->server;
	const struct ap_link_level *own = own_level(j->was, "pcie");
	uint32_t n = server->ndev, inner = j->span, s;
	double Bps = server->pcie_Bps > 0 ? server->pcie_Bps : pcie_Bps;
	struct ap_link_level level = {
		.kind = AP_LINK_SWITCH,
		.bandwidth_Bps = Bps,
		.latency_s = own ? own->latency_s : pcie_latency_s,
		.efficiency = own ? own->efficiency : pcie_share,
	};
	const char *slot = ap_arena_printf(j->ctx->arena, "PCIe of %s GB/s a device%s", in_GBps(j, Bps),
		server->pcie_Bps > 0 ? "" : ", NCCL's constant");

	if (inner == n)
		return;
	if (own && !(server->pcie_Bps > 0)) {
		(void)add_level(j, own, n);
		return;
	}
	level.name = "pcie";
	if ((s = span_of(j, AP_NEAR_SWITCH)) > inner)
		add_stated(j, &level, s, slot);
	level.name = "host";
	if ((s = span_of(j, AP_NEAR_HOST)) > j->span) {
		if (has_near(server, AP_NEAR_SWITCH)) { /* a switch has one way to the processor */
			level.kind = AP_LINK_BUS;
			level.bandwidth_Bps = Bps * (s / j->span);
		}
		add_stated(j, &level, s, slot);
	}
	if (j->span == n)
		return;
	level = (struct ap_link_level){
		.name = "sys",
		.kind = AP_LINK_BUS,
		.bandwidth_Bps = (n / j->span) *
			fmin(server->processor_Bps, Bps * level.efficiency * j->span),
		.latency_s = pcie_latency_s,
		.efficiency = 1,
	};
	add_stated(j, &level, n, ap_arena_printf(j->ctx->arena,
		"%s GB/s from each processor, NCCL's constant", in_GBps(j, server->processor_Bps)));
}

/* A device's share of the cards. Where the file does not give their rate, it is the profile's, which has a
 * card for each device, unless there are fewer. */
static void share_cards(struct joining *j, struct ap_link_level *network)
{
	const struct ap_server *server = j->server;
	double all = server->cards_Bps > 0 ? server->cards_Bps : server->ncard * card_Bps;
	struct ap_arena *arena = j->ctx->arena;

	if (network->kind != AP_LINK_NIC || !server->ncard ||
		(!(server->cards_Bps > 0) && server->ncard >= server->ndev))
		return;
	network->bandwidth_Bps = all / server->ndev;
	j->chip->sources = ap_sources_with(arena, j->chip->sources,
		ap_arena_printf(arena, "levels.%s.bandwidth_Bps", network->name),
		ap_arena_printf(arena, "%s, %s: %" PRIu32 " network cards of %s GB/s together%s for %" PRIu32
			" devices", server->name, server->form, server->ncard, in_GBps(j, all),
			server->cards_Bps > 0 ? "" : " (100 Gb/s each, NCCL's constant)", server->ndev));
}

static bool is_built_in(const char *name)
{
	const char *each;

	for (size_t i = 0; (each = ap_chip_at(i, NULL)); i++)
		if (!strcmp(each, name))
			return true;
	return false;
}

static enum ap_status check_chip(const struct joining *j)
{
	const struct ap_server *server = j->server;
	const struct ap_device *device = ap_device_of_profile(j->was->name);
	const struct ap_generation *g = device ? ap_generation_of(device->generation) : NULL;
	bool ascend = *j->was->hccl, hccs = server->direct && !strcmp(server->direct, "hccs");

	if (server->direct && (ascend != hccs || (g && strcmp(g->links, server->direct) != 0)))
		return say(j, AP_ERROR, "topology-chip", ap_arena_printf(j->ctx->arena,
			"is a server of devices with %s, which %s has not; expected --chip with theirs",
			server->direct, j->was->name));
	if (hccs && has_near(server, AP_NEAR_LINK) && !own_level(j->was, "hccs"))
		return say(j, AP_ERROR, "topology-chip", ap_arena_printf(j->ctx->arena,
			"has HCCS between devices, of which the profile %s knows nothing", j->was->name));
	if (*server->chip && strcmp(server->chip, j->was->name) != 0 && is_built_in(j->was->name))
		return say(j, AP_WARNING, "topology-chip", ap_arena_printf(j->ctx->arena,
			"names devices of %s; planned is for %s", server->chip, j->was->name));
	return AP_OK;
}

enum ap_status ap_server_chip(struct ap_ctx *ctx, const struct ap_server *server, const struct ap_chip *chip,
	const struct ap_chip **out)
{
	struct joining j = {.ctx = ctx, .server = server, .was = chip,
		.chip = ap_arena_memdup(ctx->arena, chip, sizeof *chip), .span = 1};
	char *hex = ap_arena_alloc(ctx->arena, AP_SHA256_HEX + 1, 1);
	struct ap_str text;

	AP_TRY(check_chip(&j));
	j.chip->nlevel = 0;
	j.room = AP_MAX_LEVELS - 1;
	for (int l = 0; l < chip->nlevel; l++)
		j.room -= chip->level[l].within != AP_WITHIN_SERVER;
	if (!server->direct) {
		keep_levels(&j, NULL, 0);
		if (j.span > 1)
			AP_TRY(say(&j, AP_NOTE, "topology-links", ap_arena_printf(ctx->arena,
				"does not say how devices are linked beside PCIe; links are those of "
				"the profile %s",
				chip->name)));
	} else if (!strcmp(server->direct, "hccs")) {
		if (span_of(&j, AP_NEAR_LINK) > 1)
			keep_levels(&j, own_level(chip, "hccs"), span_of(&j, AP_NEAR_LINK));
	} else {
		AP_TRY(join_links(&j));
	}
	join_pcie(&j);
	for (int l = 0; l < chip->nlevel; l++)
		if (chip->level[l].within != AP_WITHIN_SERVER)
			j.chip->level[j.chip->nlevel++] = chip->level[l];
	share_cards(&j, &j.chip->level[j.chip->nlevel - 1]);
	j.chip->server_devices = server->ndev;
	if (j.chip->pod_devices % server->ndev)
		j.chip->pod_devices = 0;
	ap_str_init(&text, ctx->arena);
	ap_chip_write(j.chip, &text);
	ap_sha256_hex(text.s, text.len, hex);
	j.chip->sha256 = hex;
	*out = j.chip;
	return AP_OK;
}

enum ap_status ap_server_profile(struct ap_ctx *ctx, const struct ap_server *server, const char **out)
{
	const struct ap_generation *g = ap_generation_of(server->generation);
	const struct ap_device *d;
	struct ap_str others;

	*out = *server->chip ? server->chip : g && g->profile ? g->profile : "";
	if (*server->chip || !**out)
		return AP_OK;
	ap_str_init(&others, ctx->arena);
	for (size_t i = 0; (d = ap_device_at(i)); i++)
		if (d->generation == server->generation && strcmp(d->profile, *out) != 0 &&
			!strstr(others.s, d->profile))
			ap_str_addf(&others, "%s%s", others.len ? ", " : "", d->profile);
	if (!others.len)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = server->name},
		"topology-chip", "names no chip but its generation, %d: %s is taken; --chip says "
		"another of it: %s",
		server->generation, *out, others.s);
}
