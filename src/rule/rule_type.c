/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of a row, "operands:results", one letter each:
 *   operands: T one type for all T, R the same and real, f real, z real or complex, i integer,
 *             8 int8, b bool, x any; real types are the floating ones
 *   results:  T, R that type, b bool, 8 int8, f real (float32 unless declared),
 *             i integer (int32 unless attribute output_type or the declaration says otherwise),
 *             m any (uint8 unless declared), C the one that attribute dst_type names,
 *             D the one that attribute dtype or output_type names, T's where there is none,
 *             c complex, r real, each as wide as operand 0, = that of the operand of that number
 * The last letter goes for all that follow.
 */
#include "base/vec.h"
#include "rule/bind.h"

#include <string.h>

static bool is_integer(enum ap_dtype t)
{
	return !ap_dtype_is_float(t) && t != AP_BOOL;
}

static bool is_real(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && !ap_dtype_is_complex(t);
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

	if ((code == 'f' || code == 'R') && !is_real(t))
		return type_fault(b, i, "a floating type");
	if (code == 'z' && !ap_dtype_is_float(t))
		return type_fault(b, i, "a floating or complex type");
	if (code == 'i' && !is_integer(t))
		return type_fault(b, i, "an integer type");
	if (code == '8' && t != AP_INT8)
		return type_fault(b, i, "int8");
	if (code == 'b' && t != AP_BOOL)
		return type_fault(b, i, "bool");
	if (code != 'T' && code != 'R')
		return true;
	if (*common != AP_DTYPE_COUNT && *common != t)
		return type_fault(b, i, ap_dtype_name(*common));
	*common = t;
	return true;
}

/* The type that an attribute names; false, and told, where it is none. */
static bool named_type(struct ap_binding *b, const char *attr, const char *name, enum ap_dtype *t)
{
	*t = ap_dtype_find(name);
	return *t != AP_DTYPE_COUNT || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is \"%s\"; a known element type is expected", attr, name);
}

static bool cast_type(struct ap_binding *b, enum ap_dtype *t)
{
	const char *name = ap_attr_str(b->in->attrs, "dst_type", NULL);

	if (!name)
		return ap_bind_fail(b, "operator-attr", -1, "attribute dst_type is missing");
	return named_type(b, "dst_type", name, t);
}

/* By dtype or output_type, where one is there; AP_DTYPE_COUNT where not. */
static bool wanted_type(struct ap_binding *b, enum ap_dtype *t)
{
	static const char *const attrs[] = {"dtype", "output_type"};

	*t = AP_DTYPE_COUNT;
	for (size_t i = 0; i < AP_COUNT(attrs); i++) {
		const char *name = ap_attr_str(b->in->attrs, attrs[i], NULL);

		if (name)
			return named_type(b, attrs[i], name, t);
	}
	return true;
}

static enum ap_dtype declared_type(const struct ap_binding *b, unsigned i)
{
	return b->in->declared && i < b->in->nout ? b->in->declared[i].dtype : AP_DTYPE_COUNT;
}

static enum ap_dtype real_type(const struct ap_binding *b, unsigned i)
{
	enum ap_dtype said = declared_type(b, i);

	return said != AP_DTYPE_COUNT && ap_dtype_is_float(said) ? said : AP_FLOAT32;
}

static bool integer_type(struct ap_binding *b, unsigned i, enum ap_dtype *t)
{
	enum ap_dtype said = declared_type(b, i);

	if (!wanted_type(b, t))
		return false;
	if (*t != AP_DTYPE_COUNT)
		return is_integer(*t) || ap_bind_fail(b, "operator-attr", -1,
			"attribute output_type is %s; an integer type is expected",
			ap_dtype_name(*t));
	*t = said != AP_DTYPE_COUNT && is_integer(said) ? said : AP_INT32;
	return true;
}

static bool is_double(const struct ap_binding *b)
{
	enum ap_dtype t = b->in->nin ? b->in->in[0].dtype : AP_FLOAT32;

	return t == AP_FLOAT64 || t == AP_COMPLEX128;
}

static bool set_result(struct ap_binding *b, unsigned i, char code, enum ap_dtype common)
{
	enum ap_dtype said = declared_type(b, i), *t = &b->bout[i].dtype, wanted;

	switch (code) {
	case 'C':
		return cast_type(b, t);
	case 'i':
		return integer_type(b, i, t);
	case 'b':
		*t = AP_BOOL;
		return true;
	case '8':
		*t = AP_INT8;
		return true;
	case 'm':
		*t = said != AP_DTYPE_COUNT ? said : AP_UINT8;
		return true;
	case '=':
		if (i >= b->in->nin)
			return set_result(b, i, 'm', common);
		*t = b->in->in[i].dtype;
		return true;
	case 'c':
		*t = is_double(b) ? AP_COMPLEX128 : AP_COMPLEX64;
		return true;
	case 'r':
		*t = is_double(b) ? AP_FLOAT64 : AP_FLOAT32;
		return true;
	default:
		if (code == 'D' && !wanted_type(b, &wanted))
			return false;
		*t = code == 'D' && wanted != AP_DTYPE_COUNT ? wanted :
			code == 'f' || common == AP_DTYPE_COUNT ? real_type(b, i) : common;
		return true;
	}
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
