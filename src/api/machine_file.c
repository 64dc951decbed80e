/* SPDX-License-Identifier: Apache-2.0 */
#include "api/machine_file.h"

#include "base/arena.h"
#include "base/foreign.h"
#include "hw/link_matrix.h"
#include "hw/nccl_xml.h"
#include "hw/rank_table.h"

enum ap_status ap_machine_file_read(struct ap_ctx *ctx, const struct ap_input *in,
	struct ap_machine_file *out)
{
	struct ap_json *doc;

	*out = (struct ap_machine_file){.sha256 = ap_input_sha256(ctx, in)};
	switch (ap_input_is_json(in) ? AP_TEXT_OTHER : ap_foreign_machine(ctx, in->text, in->len)) {
	case AP_TEXT_NCCL_XML:
		return ap_server_read_xml(ctx, in->path, in->text, in->len, &out->server);
	case AP_TEXT_LINK_MATRIX:
		return ap_server_read_matrix(ctx, in->path, in->text, in->len, &out->server);
	case AP_TEXT_HOSTS:
		return ap_hosts_read(ctx, in->path, in->text, in->len, out->sha256, &out->hosts);
	case AP_TEXT_OTHER:
		break;
	}
	AP_TRY(ap_input_json(ctx, in, AP_JSON_TRAILING_COMMA, &doc));
	return ap_topo_load(ctx, doc, out->sha256, &out->table);
}

enum ap_status ap_machine_file_topo(struct ap_ctx *ctx, const struct ap_machine_file *file, int64_t ndev,
	int64_t per_server, const struct ap_topo **out)
{
	if (file->hosts)
		return ap_hosts_topo(ctx, file->hosts, per_server, out);
	if (file->server)
		return ap_topo_make(ctx, ndev ? ndev : file->server->ndev, file->server->ndev, out);
	*out = file->table;
	return AP_OK;
}
