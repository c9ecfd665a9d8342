/* SPDX-License-Identifier: MIT */
/*
 * The functions that an NVTX client calls. See nvtx.h.
 *
 * The numbers and shapes below are the ABI of NVTX 3 between a client and a tool (nvtxTypes.h and
 * nvToolsExt.h of CUDA 10 to 13): they cannot change, and the headers need not be installed. Our
 * handles of domains and of registered strings, which are tags, are marked numbers, not pointers.
 *
 * libnvToolsExt.so.1, the former library of NVTX, asks for the same function and has the same
 * tables (tested with CUDA 12.1).
 */
#include "hook/tools/nvtx.h"

#include <stddef.h>
#include <string.h>
#include <wchar.h>

#include "base/compiler.h"
#include "core/process/session.h"
#include "core/tags/tag.h"
#include "hook/settings.h"
#include "hook/resolve/object.h"

/* ---- the ABI ---- */

#define EXPORT_CALLBACKS 1

enum module { CORE = 1, CORE2 = 5 };

/* nvtxMessageType_t */
enum { MESSAGE_CHARS = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_t, equal in all versions */
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *chars;
        const wchar_t *wide;
        uintptr_t registered;
    } message;
};
_Static_assert(sizeof(struct attributes) == 48 && offsetof(struct attributes, message) == 40,
               "as in the ABI");

typedef void (*any_fn)(void);

/* table: where pointers to functions lie, by number from 1 to size */
struct callbacks {
    size_t struct_size;
    int (*table_of)(int module, any_fn ***out_table, unsigned *out_size);
};

/* ---- names ---- */

#define HANDLE       ((uintptr_t)1 << 16) /* makes any handle other than NULL */
#define HANDLE_VALUE (HANDLE - 1)

static uintptr_t handle_of(uint16_t value)
{
    return HANDLE | value;
}

/* A handle that is not ours means the default domain. */
static uint8_t domain_of(uintptr_t handle)
{
    uintptr_t value = handle & HANDLE_VALUE;

    return handle == (HANDLE | value) && value < CW_TAG_DOMAINS ? (uint8_t)value : 0;
}

static uint16_t tag_of_handle(uintptr_t handle)
{
    uintptr_t value = handle & HANDLE_VALUE;

    return handle == (HANDLE | value) && cw_tag_name_is_known((uint32_t)value) ? (uint16_t)value
                                                                               : 0;
}

/* Bytes of one character in UTF-8. */
static unsigned encode(uint32_t c, char out[4])
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned len;

    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = len; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[len] | c);
    return len;
}

/* Cut to the longest name; wchar_t is UTF-32 here. */
static void narrow(const wchar_t *wide, char out[CW_TAG_NAME_MAX])
{
    size_t len = 0;

    for (; *wide != L'\0'; wide++) {
        char c[4];
        unsigned bytes = encode((uint32_t)*wide, c);

        if (len + bytes >= CW_TAG_NAME_MAX)
            break;
        memcpy(out + len, c, bytes);
        len += bytes;
    }
    out[len] = '\0';
}

static uint16_t tag_of_wide(uint8_t domain, const wchar_t *wide)
{
    char name[CW_TAG_NAME_MAX];

    if (wide == NULL)
        return 0;
    narrow(wide, name);
    return cw_tag_name(domain, name);
}

/* 0: no name that could be read. */
static uint16_t tag_of(uint8_t domain, const struct attributes *attributes)
{
    if (attributes == NULL || attributes->version == 0 || attributes->size < sizeof(*attributes))
        return 0;
    switch (attributes->message_type) {
    case MESSAGE_CHARS:
        return cw_tag_name(domain, attributes->message.chars);
    case MESSAGE_WIDE:
        return tag_of_wide(domain, attributes->message.wide);
    case MESSAGE_REGISTERED:
        return tag_of_handle(attributes->message.registered);
    default:
        return 0;
    }
}

/* ---- functions of the default domain ---- */

static void mark_ex(const struct attributes *attributes)
{
    cw_tag_mark(tag_of(0, attributes));
}

static void mark_a(const char *message)
{
    cw_tag_mark(cw_tag_name(0, message));
}

static void mark_w(const wchar_t *message)
{
    cw_tag_mark(tag_of_wide(0, message));
}

static uint64_t start_ex(const struct attributes *attributes)
{
    return cw_tag_begin(tag_of(0, attributes));
}

static uint64_t start_a(const char *message)
{
    return cw_tag_begin(cw_tag_name(0, message));
}

static uint64_t start_w(const wchar_t *message)
{
    return cw_tag_begin(tag_of_wide(0, message));
}

static void end(uint64_t range)
{
    cw_tag_end(range);
}

static int push_ex(const struct attributes *attributes)
{
    return cw_tag_push(0, tag_of(0, attributes));
}

static int push_a(const char *message)
{
    return cw_tag_push(0, cw_tag_name(0, message));
}

static int push_w(const wchar_t *message)
{
    return cw_tag_push(0, tag_of_wide(0, message));
}

static int pop(void)
{
    return cw_tag_pop(0);
}

/* ---- and of others ---- */

static void domain_mark_ex(uintptr_t handle, const struct attributes *attributes)
{
    cw_tag_mark(tag_of(domain_of(handle), attributes));
}

static uint64_t domain_start_ex(uintptr_t handle, const struct attributes *attributes)
{
    return cw_tag_begin(tag_of(domain_of(handle), attributes));
}

static void domain_end(uintptr_t handle, uint64_t range)
{
    (void)handle;
    cw_tag_end(range);
}

static int domain_push_ex(uintptr_t handle, const struct attributes *attributes)
{
    uint8_t domain = domain_of(handle);

    return cw_tag_push(domain, tag_of(domain, attributes));
}

static int domain_pop(uintptr_t handle)
{
    return cw_tag_pop(domain_of(handle));
}

static uintptr_t register_a(uintptr_t handle, const char *string)
{
    return handle_of(cw_tag_name(domain_of(handle), string));
}

static uintptr_t register_w(uintptr_t handle, const wchar_t *string)
{
    return handle_of(tag_of_wide(domain_of(handle), string));
}

static uintptr_t domain_create_a(const char *name)
{
    return handle_of(cw_tag_domain(name));
}

static uintptr_t domain_create_w(const wchar_t *wide)
{
    char name[CW_TAG_NAME_MAX] = "";

    if (wide != NULL)
        narrow(wide, name);
    return handle_of(cw_tag_domain(name));
}

/* The rest (names of categories and threads, resources, synchronisation) stays without a tool; so
 * does the end of a domain, whose tags are needed for the report. */
static const struct {
    uint8_t module, number;
    any_fn ours;
} functions[] = {
    {CORE, 1, (any_fn)mark_ex},
    {CORE, 2, (any_fn)mark_a},
    {CORE, 3, (any_fn)mark_w},
    {CORE, 4, (any_fn)start_ex},
    {CORE, 5, (any_fn)start_a},
    {CORE, 6, (any_fn)start_w},
    {CORE, 7, (any_fn)end},
    {CORE, 8, (any_fn)push_ex},
    {CORE, 9, (any_fn)push_a},
    {CORE, 10, (any_fn)push_w},
    {CORE, 11, (any_fn)pop},
    {CORE2, 1, (any_fn)domain_mark_ex},
    {CORE2, 2, (any_fn)domain_start_ex},
    {CORE2, 3, (any_fn)domain_end},
    {CORE2, 4, (any_fn)domain_push_ex},
    {CORE2, 5, (any_fn)domain_pop},
    {CORE2, 10, (any_fn)register_a},
    {CORE2, 11, (any_fn)register_w},
    {CORE2, 12, (any_fn)domain_create_a},
    {CORE2, 13, (any_fn)domain_create_w},
};

/* ---- the way in ---- */

/* After libc in the loader's order, we see none of the program's calls: only NVTX has loaded us. Or
 * this is a second copy, and the first one sees the calls. */
static int match_front(const struct cw_object *object, void *arg)
{
    const struct cw_object *self = arg;

    if (cw_object_is_self(object))
        return 1;
    return strcmp(cw_object_basename(object), cw_object_basename(self)) == 0 ||
                   cw_object_symbol(object, "__libc_start_main") != NULL
               ? 2
               : 0;
}

static int sees_calls(void)
{
    struct cw_object self;

    return cw_session_is_armed() || (cw_object_at((const void *)&match_front, &self) == 0 &&
                                     cw_object_visit(match_front, &self) == 1);
}

static void enter(const struct callbacks *callbacks, int module)
{
    any_fn **table = NULL;
    unsigned size = 0;

    if (callbacks->table_of(module, &table, &size) != 1 || table == NULL)
        return;
    for (size_t i = 0; i < CW_ARRAY_LEN(functions); i++)
        if (functions[i].module == module && functions[i].number <= size &&
            table[functions[i].number] != NULL)
            *table[functions[i].number] = functions[i].ours;
}

CW_EXPORT int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
    const struct callbacks *callbacks;

    if (export_table == NULL || !cw_settings_want_tags() || !sees_calls())
        return 0;
    callbacks = export_table(EXPORT_CALLBACKS);
    if (callbacks == NULL || callbacks->struct_size < sizeof(*callbacks))
        return 0;
    enter(callbacks, CORE);
    enter(callbacks, CORE2);
    return 1;
}
