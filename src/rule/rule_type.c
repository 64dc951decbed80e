/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of a row, "operands:results", one letter each:
 *   operands: T one type for all T, R the same and floating, f floating, i integer, b bool, x any
 *   results:  T, R that type, b bool, f floating (float32 unless declared),
 *             i integer (int32 unless declared), m any (uint8 unless declared),
 *             C the one that attribute dst_type names
 * The last letter goes for all that follow.
 */
#include "rule/bind.h"

#include <string.h>

static bool is_integer(enum ap_dtype t)
{
	return !ap_dtype_is_float(t) && t != AP_BOOL;
}

static bool type_fault(struct ap_binding *b, unsigned i, const char *wanted)
{
	return ap_bind_fail(b, "operator-dtype", (int)i, "operand %u is %s; %s is expected", i,
		ap_dtype_name(b->in->in[i].dtype), wanted);
}

static char code_at(const char *codes, unsigned i)
{
	unsigned n = (unsigned)strcspn(codes, ":");

	return codes[i < n ? i : n - 1];
}

static bool check_operand(struct ap_binding *b, unsigned i, enum ap_dtype *common)
{
	enum ap_dtype t = b->in->in[i].dtype;
	char code = code_at(b->row->types, ap_bind_slot(b, i));

	if (code == 'f' && !ap_dtype_is_float(t))
		return type_fault(b, i, "a floating type");
	if (code == 'i' && !is_integer(t))
		return type_fault(b, i, "an integer type");
	if (code == 'b' && t != AP_BOOL)
		return type_fault(b, i, "bool");
	if (code != 'T' && code != 'R')
		return true;
	if (code == 'R' && !ap_dtype_is_float(t))
		return type_fault(b, i, "a floating type");
	if (*common != AP_DTYPE_COUNT && *common != t)
		return type_fault(b, i, ap_dtype_name(*common));
	*common = t;
	return true;
}

static bool cast_type(struct ap_binding *b, enum ap_dtype *t)
{
	const char *name = ap_attr_str(b->in->attrs, "dst_type", NULL);

	if (!name)
		return ap_bind_fail(b, "operator-attr", -1, "attribute dst_type is missing");
	*t = ap_dtype_find(name);
	return *t != AP_DTYPE_COUNT || ap_bind_fail(b, "operator-attr", -1,
		"attribute dst_type is \"%s\", no known type", name);
}

static enum ap_dtype declared_type(const struct ap_binding *b, unsigned i)
{
	return b->in->declared && i < b->in->nout ? b->in->declared[i].dtype : AP_DTYPE_COUNT;
}

static bool set_result(struct ap_binding *b, unsigned i, char code, enum ap_dtype common)
{
	enum ap_dtype said = declared_type(b, i), *t = &b->bout[i].dtype;

	if (code == 'C')
		return cast_type(b, t);
	if (code == 'b')
		*t = AP_BOOL;
	else if (code == 'm')
		*t = said != AP_DTYPE_COUNT ? said : AP_UINT8;
	else if (code == 'i')
		*t = said != AP_DTYPE_COUNT && is_integer(said) ? said : AP_INT32;
	else if (code == 'f' || common == AP_DTYPE_COUNT)
		*t = said != AP_DTYPE_COUNT && ap_dtype_is_float(said) ? said : AP_FLOAT32;
	else
		*t = common;
	return true;
}

bool ap_bind_types(struct ap_binding *b)
{
	const char *results = strchr(b->row->types, ':') + 1;
	enum ap_dtype common = AP_DTYPE_COUNT;

	for (unsigned i = 0; i < b->in->nin; i++)
		if (!check_operand(b, i, &common))
			return false;
	for (unsigned i = 0; i < b->nout; i++)
		if (!set_result(b, i, code_at(results, i), common))
			return false;
	return true;
}
