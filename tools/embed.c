/* SPDX-License-Identifier: Apache-2.0 */
/* embed SYMBOL OUT.c IN...: writes a C file that defines SYMBOL, an array of struct ap_builtin
 * (hw/builtin.h) with the base name (without suffix) and the text of each IN, and a final row of
 * NULL. Run by the build. Bytes are written as character constants: string literals of this length
 * exceed what C guarantees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *path)
{
	fprintf(stderr, "embed: %s: ", what);
	perror(path);
	exit(EXIT_FAILURE);
}

static void write_text(FILE *out, const char *path, int number)
{
	FILE *in = fopen(path, "rb");
	int c, col = 0;

	if (!in)
		die("cannot read", path);
	fprintf(out, "static const char text_%d[] = {\n", number);
	while ((c = getc(in)) != EOF)
		fprintf(out, "'\\%03o',%s", (unsigned)c, ++col % 16 ? "" : "\n");
	fprintf(out, "'\\0'};\n\n");
	if (ferror(in) || fclose(in))
		die("cannot read", path);
}

static void write_row(FILE *out, const char *path, int number)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dot = strrchr(base, '.');

	fprintf(out, "\t{\"%.*s\", text_%d},\n", dot ? (int)(dot - base) : (int)strlen(base), base,
		number);
}

int main(int argc, char **argv)
{
	FILE *out;

	if (argc < 4) {
		fputs("usage: embed SYMBOL OUT.c IN...\n", stderr);
		return EXIT_FAILURE;
	}
	out = fopen(argv[2], "wb");
	if (!out)
		die("cannot write", argv[2]);
	fputs("#include \"hw/builtin.h\"\n\n#include <stddef.h>\n\n", out);
	for (int i = 3; i < argc; i++)
		write_text(out, argv[i], i);
	fprintf(out, "const struct ap_builtin %s[] = {\n", argv[1]);
	for (int i = 3; i < argc; i++)
		write_row(out, argv[i], i);
	fputs("\t{NULL, NULL},\n};\n", out);
	if (ferror(out) || fclose(out))
		die("cannot write", argv[2]);
	return EXIT_SUCCESS;
}
