/* SPDX-License-Identifier: MIT */
/*
 * AUDIT from the model, in the words of the report layer: it gets a live layout that has nothing
 * but the process's id, the audit, and one chunk of texts.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text/form.h"
#include "cli/text/form_whole.h"
#include "live/view.h"
#include "report/text/text_audit.h"

#define TEXT_SIZE 65536u /* of all texts; a power of two */
#define TEXT_MAX  1000u  /* a longer one is cut, as it is when it is shown */

_Static_assert((2 * CW_AUDIT_FINDINGS + CW_AUDIT_VARIABLES) * (TEXT_MAX + 1) < TEXT_SIZE,
               "there is room for each text");

struct layout {
    struct cw_live_header header;
    char text[TEXT_SIZE];
};

/* Its index. */
static uint32_t add_text(struct layout *layout, const char *text)
{
    struct cw_live_table *table = &layout->header.table[CW_TABLE_TEXT];
    uint32_t at = atomic_load(&table->count);
    size_t len = strnlen(text, TEXT_MAX);

    if (len == 0)
        return 0;
    memcpy(layout->text + at, text, len);
    atomic_store(&table->count, at + (uint32_t)len + 1);
    return at;
}

static void fill(struct layout *layout, const struct cw_model *model)
{
    struct cw_live_table *table = &layout->header.table[CW_TABLE_TEXT];
    struct cw_live_audit *audit = &layout->header.audit;

    table->elem_size = 1;
    table->first = TEXT_SIZE;
    atomic_store(&table->count, 1);
    atomic_store(&table->chunk[0], offsetof(struct layout, text));
    layout->header.pid = model->process.pid;
    *audit = model->audit.of;
    audit->why = add_text(layout, model->audit.why);
    for (uint32_t i = 0; i < audit->findings; i++)
        audit->finding[i].source = add_text(layout, model->audit.source[i]);
    for (uint32_t i = 0; i < audit->variables; i++)
        audit->variable[i].name = add_text(layout, model->audit.name[i]);
}

int cw_form_audit(const struct cw_say *to)
{
    struct layout *layout = calloc(1, sizeof(*layout));
    struct cw_view view = {.base = (const char *)layout, .size = sizeof(*layout)};
    struct cw_text text = {.view = &view, .form = CW_TEXT_FULL};
    int rc;

    if (!layout) {
        cw_cli_error("'%s': out of memory", to->model->source);
        return CW_FORM_TOLD;
    }
    fill(layout, to->model);
    rc = cw_form_borrow(to, &text, cw_text_audit);
    free(layout);
    return rc;
}
