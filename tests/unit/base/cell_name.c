/* SPDX-License-Identifier: MIT */
/* What cells of notebooks are called. */
#include "base/cell_name.h"

#include <criterion/criterion.h>

#include <stdio.h>

#include "base/compiler.h"

static const struct {
    const char *file, *name;
} cases[] = {
    {"<ipython-input-2-0f1e2d3c4b5a>", "Cell In[2]"},
    {"<ipython-input-1024-0>", "Cell In[1024]"},
    {"/tmp/ipykernel_4711/3947229.py", "Cell 3947229"},
    {"/var/folders/x/ipykernel_1/1.py", "Cell 1"},
    /* None. */
    {"", ""},
    {"<string>", "<string>"},
    {"<ipython-input-", "<ipython-input-"},
    {"<ipython-input--0f1e>", "<ipython-input--0f1e>"},
    {"<ipython-input-2>", "<ipython-input-2>"},
    {"/home/me/<ipython-input-2-0f>", "/home/me/<ipython-input-2-0f>"},
    {"/tmp/ipykernel_4711/train.py", "/tmp/ipykernel_4711/train.py"},
    {"/tmp/ipykernel_4711/12.pyc", "/tmp/ipykernel_4711/12.pyc"},
    {"/tmp/ipykernel_4711/x/12.py", "/tmp/ipykernel_4711/x/12.py"},
    {"/tmp/ipykernel_4711x/12.py", "/tmp/ipykernel_4711x/12.py"},
    {"/tmp/ipykernel_/.py", "/tmp/ipykernel_/.py"},
    {"/tmp/12.py", "/tmp/12.py"},
    {"/ipykernel_4711", "/ipykernel_4711"},
};

Test(cell_name, is_that_of_the_notebook)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(cases); i++) {
        char file[64];

        snprintf(file, sizeof(file), "%s", cases[i].file);
        cr_expect_str_eq(cw_cell_name(file), cases[i].name, "%s", cases[i].file);
        cr_expect_str_eq(file, cases[i].name);
    }
}
