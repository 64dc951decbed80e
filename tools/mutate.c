/* SPDX-License-Identifier: Apache-2.0 */
/* mutate SEED: copies standard input to standard output with a few faults: bytes flipped, removed,
 * doubled or replaced by one that matters in our formats, or the end cut off. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 24, MAX_FAULTS = 4 };

/* xorshift64*; state must not be 0. */
static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * UINT64_C(0x2545F4914F6CDD1D) >> 11) % below;
}

static size_t add_fault(uint64_t *state, unsigned char *text, size_t len)
{
	static const unsigned char marks[] = "{}[]\",:-.e0919\\ntf\0\xff\x80";
	size_t at = (size_t)draw(state, len);

	switch (draw(state, 6)) {
	case 0:
		text[at] = (unsigned char)(text[at] ^ 1u << draw(state, 8));
		return len;
	case 1:
		memmove(text + at, text + at + 1, len - at - 1);
		return len - 1;
	case 2:
		memmove(text + at + 1, text + at, len - at);
		return len + 1;
	case 3:
		return draw(state, 4) ? len : at;
	default:
		text[at] = marks[draw(state, sizeof marks - 1)];
		return len;
	}
}

int main(int argc, char **argv)
{
	uint64_t state = argc == 2 ? strtoull(argv[1], NULL, 10) * 2 + 1 : 0;
	unsigned char *text = malloc(MAX_BYTES + MAX_FAULTS);
	size_t len;

	if (!state || !text) {
		fputs("usage: mutate SEED <IN >OUT\n", stderr);
		return 2;
	}
	len = fread(text, 1, MAX_BYTES, stdin);
	for (uint64_t n = 1 + draw(&state, MAX_FAULTS); n && len; n--)
		len = add_fault(&state, text, len);
	fwrite(text, 1, len, stdout);
	free(text);
	return ferror(stdin) || fflush(stdout) ? 6 : 0;
}
