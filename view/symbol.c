/* SPDX-License-Identifier: MIT */
/* Owns kernels' names as people read them: without mangling, return type, parameters and namespaces. */
#include <stdbool.h>
#include <string.h>
#include "view/symbol.h"

#define SYMBOL_SIZE 1024u

static bool symbol_is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '~' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

/* One "<length><identifier>" of a mangled name; NULL if there is none. */
static const char *symbol_source(const char *at, const char **ret_text, size_t *ret_size)
{
	size_t size = 0;

	if (*at < '1' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9' && size < SYMBOL_SIZE; at++)
		size = size * 10 + (size_t)(*at - '0');
	if (strnlen(at, size) < size)
		return NULL;
	*ret_text = at;
	*ret_size = size;
	return at + size;
}

/* "_ZN2at6native12_GLOBAL__N_13fooIfEEvPT_i" to "foo": the last identifier of the name, which is all that is read of
 * it. False: it is not of this kind. */
static bool symbol_demangle(const char *name, char *buffer, size_t buffer_size)
{
	const char *at, *text = NULL, *last = NULL;
	size_t size = 0, last_size = 0;
	bool is_nested;

	if (strncmp(name, "_Z", 2) != 0)
		return false;
	at = name + 2;
	is_nested = *at == 'N';
	at += is_nested;
	at += strspn(at, "KVr");
	while ((text = NULL, at = symbol_source(at, &text, &size)) != NULL) {
		last = text;
		last_size = size;
		if (!is_nested)
			break;
	}
	if (!last || last_size >= buffer_size)
		return false;
	memcpy(buffer, last, last_size);
	buffer[last_size] = '\0';
	return true;
}

/* Where the parameters begin, behind the name and its template's arguments; NULL: there are none, or it cannot be told.
 */
static const char *symbol_parameters(const char *name)
{
	int depth = 0;

	for (const char *at = name; *at; at++) {
		if (*at == '<')
			depth++;
		else if (*at == '>' && at > name && at[-1] != '-')
			depth--;
		else if (*at == '(' && !depth && strncmp(at, "(anonymous namespace)", 21) && strncmp(at, "()(", 3))
			return at > name && at[-1] != ' ' ? at : NULL;
		else if (*at == '(' && !strncmp(at, "(anonymous namespace)", 21))
			at += 20;
		if (depth < 0)
			return NULL;
	}
	return NULL;
}

/* Takes back what stands in front of "::": an identifier, with its template's arguments if it has some. */
static size_t symbol_unqualify(const char *text, size_t used)
{
	size_t at = used;
	int depth = 0;

	if (at && text[at - 1] == '>') {
		do {
			at--;
			depth += text[at] == '>' ? 1 : text[at] == '<' ? -1 : 0;
		} while (at && depth);
		if (depth)
			return used;
	}
	while (at && symbol_is_word(text[at - 1]))
		at--;
	return at;
}

/* Behind the return type: the blank in front of the last word that is outside all brackets. */
static const char *symbol_name(const char *text, const char *end)
{
	const char *found = text;
	int depth = 0;

	for (const char *at = text; at < end; at++) {
		if (*at == '<' || *at == '(' || *at == '{')
			depth++;
		else if ((*at == '>' && at > text && at[-1] != '-') || *at == ')' || *at == '}')
			depth--;
		else if (*at == ' ' && !depth && at + 1 < end)
			found = at + 1;
	}
	return found;
}

const char *gp_symbol_short(const char *name, char *buffer, size_t buffer_size)
{
	static const char hidden[] = "(anonymous namespace)";
	const char *end, *at;
	size_t used = 0;

	if (symbol_demangle(name, buffer, buffer_size))
		return buffer;
	end = symbol_parameters(name);
	if (!end && !strstr(name, "::") && !strchr(name, '<'))
		return name;
	end = end ? end : name + strlen(name);
	for (at = symbol_name(name, end); at < end && used + 1 < buffer_size;) {
		if (!strncmp(at, hidden, sizeof(hidden) - 1)) {
			at += sizeof(hidden) - 1;
			at += strncmp(at, "::", 2) ? 0 : 2;
		} else if (!strncmp(at, "::", 2)) {
			used = symbol_unqualify(buffer, used);
			at += 2;
		} else {
			buffer[used++] = *at++;
		}
	}
	buffer[used] = '\0';
	return used ? buffer : name;
}
