/* SPDX-License-Identifier: MIT */
/*
 * Qualified names, of mangled and of readable symbols. See qualified.h. Parses the part of the
 * Itanium C++ ABI mangling that nested names need: names with their length, and the extent of
 * template arguments.
 */
#include "report/symbols/qualified.h"

#include <string.h>

#include "base/compiler.h"
#include "base/out.h"

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void add(struct cw_out *out, const char *name, size_t len)
{
    cw_out_string(out, "::");
    cw_out_write(out, name, len);
}

/* ---- mangled ---- */

/* A name prefixed by its length; returns its end, or NULL. */
static const char *read_name(const char *at, const char **out_name, size_t *out_len)
{
    size_t len = 0;

    for (; is_digit(*at) && len < 4096; at++)
        len = len * 10 + (size_t)(*at - '0');
    if (len == 0 || strnlen(at, len) < len)
        return NULL;
    *out_name = at;
    *out_len = len;
    return at + len;
}

/* Template arguments, starting at their I; returns their end, or NULL. */
static const char *skip_arguments(const char *at)
{
    const char *name;
    size_t len;
    int depth = 0;

    do {
        if (is_digit(*at)) {
            at = read_name(at, &name, &len);
            if (!at)
                return NULL;
            continue;
        }
        if (*at == '\0')
            return NULL;
        if (*at == 'L' && at[1] >= 'a' && at[1] <= 'z') { /* a number, "Lb1E" */
            at = strchr(at, 'E') ? strchr(at, 'E') + 1 : "";
            continue;
        }
        if (*at == 'S' || *at == 'T') { /* a substitution, St, S_, S0_, T_ */
            at += at[1] == '\0' ? 1 : 2;
            continue;
        }
        if (strchr("INXJLF", *at))
            depth++;
        else if (*at == 'E')
            depth--;
        at++;
    } while (depth > 0);
    return at;
}

/* Of a nested name; 0, or -1 if nothing in it is understood. */
static int read_nested(const char *at, struct cw_out *out)
{
    const char *name;
    size_t len;
    int parts = 0;

    while (*at != '\0' && *at != 'E') {
        if (*at == 'I')
            at = skip_arguments(at);
        else if (is_digit(*at)) {
            at = read_name(at, &name, &len);
            if (at) {
                add(out, name, len);
                parts++;
            }
        } else if (*at == 'S' && at[1] == 't') {
            add(out, "std", 3);
            at += 2;
        } else if (strchr("KVrRO", *at) || (*at == 'L' && is_digit(at[1])) || parts == 0)
            at++; /* L: of a static function */
        else      /* a constructor, a destructor or an operator: the class is what matters */
            break;
        if (!at) /* the part understood so far counts */
            break;
    }
    return parts > 0 ? 0 : -1;
}

static int read_mangled(const char *symbol, struct cw_out *out)
{
    const char *at = symbol + 2;
    const char *name;
    size_t len;

    if (*at == 'N')
        return read_nested(at + 1, out);
    if (*at == 'L')
        at++;
    if (!is_digit(*at) || !read_name(at, &name, &len))
        return -1;
    add(out, name, len);
    return 0;
}

/* ---- readable ---- */

static const char anonymous[] = "(anonymous namespace)";

/* The beginning of the name itself: after the return type, which template functions have. */
static const char *skip_return_type(const char *symbol)
{
    const char *begin = symbol;
    int depth = 0;

    for (const char *at = symbol; *at != '\0'; at++) {
        if (strncmp(at, anonymous, strlen(anonymous)) == 0)
            at += strlen(anonymous) - 1;
        else if (strncmp(at, "operator", 8) == 0 || (*at == '(' && depth == 0))
            break;
        else if (*at == '<')
            depth++;
        else if (*at == '>')
            depth--;
        else if (*at == ' ' && depth == 0)
            begin = at + 1;
    }
    return begin;
}

static void read_readable(const char *symbol, struct cw_out *out)
{
    int depth = 0;

    cw_out_string(out, "::");
    for (const char *at = skip_return_type(symbol); *at != '\0'; at++) {
        if (depth == 0 && strncmp(at, anonymous, strlen(anonymous)) == 0) {
            cw_out_string(out, anonymous);
            at += strlen(anonymous) - 1;
            continue;
        }
        if (depth == 0 && (*at == '(' || strncmp(at, "operator", 8) == 0))
            return;
        if (*at == '<')
            depth++;
        if (depth == 0)
            cw_out_char(out, *at);
        if (*at == '>' && depth > 0)
            depth--;
    }
}

char *cw_qualified_name(const char *symbol, char *buf, size_t cap)
{
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    if (strncmp(symbol, "_Z", 2) != 0 || read_mangled(symbol, &out) != 0) {
        cw_out_init(&out, -1, buf, cap - 1);
        read_readable(symbol, &out);
    }
    buf[out.len] = '\0';
    return buf;
}

/* ---- for reading ---- */

static const char operator_word[] = "operator";

/* What may stand behind the parameters. */
static int is_rest(const char *at)
{
    static const char *const rest[] = {" const", " volatile", " &", " noexcept", " ["};

    if (*at == '\0')
        return 1;
    for (size_t i = 0; i < CW_ARRAY_LEN(rest); i++)
        if (strncmp(at, rest[i], strlen(rest[i])) == 0)
            return 1;
    return 0;
}

static int is_behind_operator(const char *symbol, const char *at)
{
    size_t len = strlen(operator_word);

    return (size_t)(at - symbol) >= len && memcmp(at - len, operator_word, len) == 0;
}

/* The parenthesis that opens the parameters, which end the name: those of lambdas and templates
 * stand before. NULL: there is none, so it is no readable C++ symbol, or has no parameters. */
static const char *find_parameters(const char *symbol)
{
    const char *last = strrchr(symbol, ')');
    int depth = 0;

    if (last == NULL || !is_rest(last + 1))
        return NULL;
    for (const char *at = last + 1; at-- > symbol;) {
        if (*at == ')')
            depth++;
        if (*at != '(' || --depth > 0)
            continue;
        if (strncmp(at, anonymous, strlen(anonymous)) == 0 || is_behind_operator(symbol, at))
            return NULL;
        return at;
    }
    return NULL;
}

static int begins(const char *at, const char *end, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(end - at) >= len && memcmp(at, word, len) == 0;
}

static int is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/* The length of an operator's name, "operator<<", of a conversion that of the word; 0: it is none.
 */
static size_t operator_length(const char *begin, const char *at, const char *end)
{
    size_t len = strlen(operator_word);

    if (!begins(at, end, operator_word) || (at > begin && is_word_char(at[-1])) ||
        is_word_char(at[len]))
        return 0;
    if (begins(at + len, end, "()"))
        return len + 2;
    return len + strspn(at + len, "<>=!+-*/%^&|~,[]");
}

static void add_short(struct cw_out *out, const char *begin, const char *end)
{
    int depth = 0;
    size_t len;

    for (const char *at = begin; at < end; at++) {
        len = operator_length(begin, at, end);
        if (len > 0) {
            if (depth == 0)
                cw_out_write(out, at, len);
            at += len - 1;
            continue;
        }
        depth += *at == '<';
        if (depth == 0)
            cw_out_char(out, *at);
        depth -= *at == '>' && depth > 0;
    }
}

char *cw_short_name(const char *symbol, size_t whole, char *buf, size_t cap)
{
    const char *end = find_parameters(symbol), *begin = skip_return_type(symbol);
    struct cw_out out;

    cw_out_init(&out, -1, buf, cap - 1);
    if (strlen(symbol) <= whole || end == NULL || end <= begin || strncmp(symbol, "_Z", 2) == 0)
        cw_out_string(&out, symbol);
    else
        add_short(&out, begin, end);
    if (out.len == 0)
        cw_out_string(&out, symbol);
    buf[out.len] = '\0';
    if (out.truncated)
        memcpy(buf + cap - 4, "...", 4);
    return buf;
}
