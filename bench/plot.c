/* SPDX-License-Identifier: Apache-2.0 */
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/vec.h"
#include "errors.h"
#include "report.h"

void write_svg(const char *path, struct ap_arena *arena, const struct table *t)
{
	static const char *const colors[] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377",
		"#bbbbbb", "#000000"};
	static const char *const marks[] = { /* a disc, a cross, a triangle */
		"<circle id=\"m0\" r=\"2.5\" fill=\"currentColor\" fill-opacity=\"0.7\"/>",
		"<path id=\"m1\" d=\"M-3 -3l6 6m-6 0l6 -6\" stroke=\"currentColor\" fill=\"none\"/>",
		"<path id=\"m2\" d=\"M0 -3.5l3 6h-6z\" stroke=\"currentColor\" fill=\"none\"/>",
	};
	enum { SIDE = 480, LEFT = 50, TOP = 20, LEGEND = LEFT + SIDE + 20 };
	static const double off[] = {0.75, 1, 1.25};
	struct errors *sets;
	size_t nset = errors_by(arena, t, source_of, &sets) - 1, shown = 0;
	double least = INFINITY, most = 0, first, decades, side = SIDE;
	FILE *out = open_out(path);

	for (size_t i = 0; i < t->n; i++)
		if (has_time(&t->v[i])) {
			least = fmin(least, fmin(t->v[i].measured_s, t->v[i].predicted_s));
			most = fmax(most, fmax(t->v[i].measured_s, t->v[i].predicted_s));
		}
	first = most > 0 ? floor(log10(least)) : 0;
	decades = most > 0 ? fmax(1, ceil(log10(most)) - first) : 1;
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<defs>", LEGEND + 180,
		TOP + SIDE + 45);
	for (size_t i = 0; i < AP_COUNT(marks); i++)
		fputs(marks[i], out);
	fputs("</defs>\n", out);
#define X(s) (LEFT + (log10(s) - first) / decades * side)
#define USE "<use href=\"#m%zu\" x=\"%.1f\" y=\"%.1f\" color=\"%s\"/>\n"
#define Y(s) (TOP + side - (log10(s) - first) / decades * side)
	for (int d = 0; d <= (int)decades; d++) {
		double at = pow(10, first + d);

		fprintf(out, "<path d=\"M%.1f %dV%dM%d %.1fH%d\" stroke=\"#dddddd\"/>\n", X(at), TOP,
			TOP + SIDE, LEFT, Y(at), LEFT + SIDE);
		fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g s</text>\n", X(at),
			TOP + SIDE + 15, at);
		fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g s</text>\n", LEFT - 5,
			Y(at) + 4, at);
	}
	for (size_t i = 0; i < AP_COUNT(off); i++) {
		double from = pow(10, first), to = pow(10, first + decades);

		fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#888888\"%s/>\n", X(from),
			Y(from * off[i]), X(to), Y(to * off[i]),
			off[i] < 1 || off[i] > 1 ? " stroke-dasharray=\"3 3\"" : "");
	}
	for (size_t k = 0; k < nset; k++) {
		const char *color = colors[shown % AP_COUNT(colors)];
		size_t mark = shown / AP_COUNT(colors) % AP_COUNT(marks);

		if (!sets[k].time.n)
			continue;
		for (size_t i = 0; i < t->n; i++)
			if (has_time(&t->v[i]) && !strcmp(t->v[i].field[COL_source_id], sets[k].name))
				fprintf(out, USE, mark, X(t->v[i].measured_s), Y(t->v[i].predicted_s), color);
		fprintf(out, USE, mark, (double)LEGEND, TOP + 10 + 16.0 * (double)shown, color);
		fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", LEGEND + 10, TOP + 14 + 16 * (int)shown,
			sets[k].name);
		shown++;
	}
#undef X
#undef Y
#undef USE
	fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">measured</text>\n"
		"<text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">predicted</text>\n"
		"</svg>\n",
		LEFT + SIDE / 2, TOP + SIDE + 35, TOP + SIDE / 2);
	close_out(out, path);
}
