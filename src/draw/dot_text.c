/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/dot_text.h"

#include <string.h>

/* dot reads at most 16384 bytes between two quotes. Two names may stand there, and cgraph doubles
 * them when they are nothing but quotes. */
enum { NAME_BYTES = 3000 };

/* Length of the character at s that must not stand in a picture as it is, 0 when it may; *code is
 * its number. SVG forbids control characters; bidi controls turn around what follows them. */
static size_t hidden(const unsigned char *s, unsigned *code)
{
	*code = s[0];
	if ((s[0] < ' ' && s[0] != '\t') || s[0] == 0x7F)
		return 1;
	if (s[0] == 0xC2 && s[1] >= 0x80 && s[1] < 0xA0) {
		*code = s[1];
		return 2;
	}
	if ((s[0] & 0xF0) != 0xE0 || !s[1] || !s[2])
		return 0;
	*code = (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
	return (*code >= 0x202A && *code <= 0x202E) || (*code >= 0x2066 && *code <= 0x2069) ||
		(*code >= 0xFFFE && *code <= 0xFFFF) ? 3 : 0;
}

static bool inside_character(char c)
{
	return ((unsigned char)c & 0xC0) == 0x80;
}

void ap_dot_add_name(struct ap_str *out, const char *name)
{
	size_t before = out->len;
	unsigned code;
	size_t len;

	for (; *name; name += len ? len : 1) {
		if (out->len - before >= NAME_BYTES && !inside_character(*name)) {
			ap_str_add(out, "...");
			return;
		}
		len = *name == '\n' ? 0 : hidden((const unsigned char *)name, &code);
		if (*name == '\n')
			ap_str_add(out, "\\n");
		else if (len)
			ap_str_addf(out, code < 0x100 ? "\\\\x%02x" : "\\\\u%04x", code);
		else if (*name == '\\')
			ap_str_add(out, "\\\\");
		else
			ap_str_addc(out, *name);
	}
}

void ap_dot_add_html(struct ap_str *out, const char *name)
{
	unsigned code;

	for (size_t len; *name; name += len ? len : 1) {
		len = *name == '\n' ? 0 : hidden((const unsigned char *)name, &code);
		if (len)
			ap_str_addf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
		else if (*name == '\n')
			ap_str_add(out, "<BR ALIGN=\"LEFT\"/>");
		else if (strchr("<>&\"", *name))
			ap_str_addf(out, "&#%d;", *name);
		else
			ap_str_addc(out, *name);
	}
}
