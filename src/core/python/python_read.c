/* SPDX-License-Identifier: MIT */
/* What can be read, and the characters of a str. See python_read.h. */
#include "core/python/python_read.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNAL_SET_SIZE ((size_t)8)         /* the kernel's */
#define TEXT_MAX        ((uint64_t)1 << 16) /* characters of a name; longer is nonsense */

/* The kernel reads the first signal set before it looks at what is to be done with it; there is no
 * such thing to be done as ~0. A few words suffice: no structure is larger than a page. */
static int is_word_readable(uintptr_t at)
{
    return syscall(SYS_rt_sigprocmask, ~0, at, NULL, SIGNAL_SET_SIZE) == 0 || errno != EFAULT;
}

int cw_python_is_readable(uintptr_t at, size_t size)
{
    int saved_errno = errno;
    int answer = at != 0 && at % sizeof(void *) == 0 && is_word_readable(at) &&
                 is_word_readable((at + size - 1) & ~(uintptr_t)7);

    errno = saved_errno;
    return answer;
}

int cw_python_find_chars(const struct cw_python_layout *layout,
                         const struct cw_python_symbols *symbols, uintptr_t object,
                         struct cw_python_chars *out)
{
    uint32_t state;

    if (object == 0 || cw_read_word(object + CW_PYTHON_TYPE) != (uintptr_t)symbols->unicode_type)
        return -1;
    state = cw_read_int(object + CW_PYTHON_TEXT_STATE) >> layout->kind_bit;
    out->width = state & 7;
    out->count = cw_read_word(object + CW_PYTHON_TEXT_LENGTH);
    /* Three bits of kind, is it in one piece with its characters, is it ASCII. */
    if ((out->width != 1 && out->width != 2 && out->width != 4) || !(state & 8) ||
        out->count > TEXT_MAX)
        return -1;
    out->at = object + (state & 16 ? layout->ascii : layout->compact);
    return 0;
}

uint64_t cw_python_text_size(const struct cw_python_layout *layout,
                             const struct cw_python_symbols *symbols, uintptr_t object)
{
    struct cw_python_chars chars;

    if (cw_python_find_chars(layout, symbols, object, &chars) != 0)
        return layout->compact;
    return chars.at + chars.count * chars.width - object;
}
