/* SPDX-License-Identifier: MIT */
#include "python_fixture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct fake_python fake;

void fake_put_word(void *base, size_t at, uint64_t value)
{
    memcpy((char *)base + at, &value, sizeof(value));
}

void fake_put_int(void *base, size_t at, uint32_t value)
{
    memcpy((char *)base + at, &value, sizeof(value));
}

static void *thread_value(unsigned key)
{
    return pthread_getspecific(key);
}

static unsigned long thread_self(void)
{
    return (unsigned long)pthread_self();
}

/* What 3.13 and 3.14 say of themselves, of the fields that are read. */
static void publish(uint32_t version)
{
    static const struct {
        uint8_t at_13, at_14;
        uint16_t value_13, value_14;
    } words[] = {
        {4, 4, 608, 784},   {23, 26, 72, 72},   {24, 27, 152, 152}, {29, 32, 8, 8},
        {30, 33, 0, 0},     {31, 34, 56, 56},   {33, 36, 70, 74},   {35, 40, 112, 112},
        {36, 41, 120, 120}, {37, 42, 128, 128}, {38, 43, 136, 136}, {39, 44, 68, 68},
        {43, 48, 200, 208}, {70, 80, 40, 40},   {45, 51, 8, 8},     {65, 75, 16, 16},
        {66, 76, 32, 32},   {68, 78, 32, 32},   {69, 79, 16, 16},
    };
    int is_13 = (version >> 16 & 0xff) == 13;

    memcpy(fake.runtime, "xdebugpy", 8);
    fake.runtime[1] = version;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        fake.runtime[is_13 ? words[i].at_13 : words[i].at_14] =
            is_13 ? words[i].value_13 : words[i].value_14;
}

void fake_start(uint32_t version)
{
    char reason[80];

    memset(&fake, 0, sizeof(fake));
    fake.symbols = (struct cw_python_symbols){
        .version = version,
        .runtime = fake.runtime,
        .code_type = fake.code_type,
        .unicode_type = fake.unicode_type,
        .thread_value = thread_value,
        .thread_self = thread_self,
    };
    if (version >= 0x030d0000)
        publish(version);
    if (pthread_key_create(&fake.key, NULL) != 0 ||
        pthread_setspecific(fake.key, fake.state) != 0 ||
        cw_python_layout_find(&fake.symbols, &fake.layout, reason, sizeof(reason)) != 0)
        abort();
    fake_put_int(fake.runtime, fake.layout.key, 1);
    fake_put_int(fake.runtime, fake.layout.key + sizeof(int), fake.key);
    fake_put_word(fake.state, fake.layout.thread_id, thread_self());
    fake_set_text(&fake.file, "file.py", 7, 1, 1);
    fake_set_text(&fake.name, "name", 4, 1, 1);
    fake_set_table("\0\0", 2);
}

void fake_arm(void)
{
    cw_python_set_symbols(&fake.symbols);
}

void fake_set_text(struct fake_text *text, const void *chars, size_t count, unsigned width,
                   int is_ascii)
{
    unsigned state = width | 8u | (is_ascii ? 16u : 0u);

    fake_put_word(text, CW_PYTHON_TYPE, (uintptr_t)fake.unicode_type);
    fake_put_word(text, CW_PYTHON_TEXT_LENGTH, count);
    fake_put_int(text, CW_PYTHON_TEXT_STATE, state << fake.layout.kind_bit);
    memcpy((char *)text + (is_ascii ? fake.layout.ascii : fake.layout.compact), chars,
           count * width);
}

void fake_set_table(const void *bytes, size_t size)
{
    fake_put_word(fake.table, CW_PYTHON_SIZE, size);
    memcpy((char *)fake.table + CW_PYTHON_BYTES, bytes, size);
}

static void set_code(unsigned index)
{
    uint64_t *code = fake.code[index];
    const struct cw_python_layout *layout = &fake.layout;

    fake_put_word(code, CW_PYTHON_TYPE, (uintptr_t)fake.code_type);
    fake_put_word(code, layout->file, (uintptr_t)&fake.file);
    fake_put_word(code, layout->name, (uintptr_t)&fake.name);
    fake_put_word(code, layout->function, (uintptr_t)&fake.name);
    fake_put_word(code, layout->line_table, (uintptr_t)fake.table);
    fake_put_int(code, layout->first_line, 100 + index);
}

void fake_set_frame(unsigned index, enum fake_owner owner, int32_t instr)
{
    uint64_t *frame = fake.frame[index], *code = fake.code[index];
    const struct cw_python_layout *layout = &fake.layout;

    set_code(index);
    fake_put_word(frame, layout->code, (uintptr_t)code | (layout->tag & 1));
    if (layout->instr == CW_PYTHON_INSTR_ADDRESS)
        fake_put_word(frame, layout->frame_instr,
                      (uintptr_t)code + layout->bytes + (uintptr_t)(intptr_t)instr);
    else
        fake_put_int(frame, layout->frame_instr,
                     (uint32_t)(layout->instr == CW_PYTHON_INSTR_UNITS ? instr / 2 : instr));
    if (layout->owner != CW_PYTHON_NONE)
        ((char *)frame)[layout->owner] = (char)owner;
}

void fake_link(unsigned count)
{
    uintptr_t first = count > 0 ? (uintptr_t)fake.frame[0] : 0;

    for (unsigned i = 0; i < count; i++)
        fake_put_word(fake.frame[i], fake.layout.previous,
                      i + 1 < count ? (uintptr_t)fake.frame[i + 1] : 0);
    if (fake.layout.cframe_frame != CW_PYTHON_NONE) {
        fake_put_word(fake.cframe, fake.layout.cframe_frame, first);
        first = (uintptr_t)fake.cframe;
    }
    fake_put_word(fake.state, fake.layout.thread_frame, first);
}
