/* SPDX-License-Identifier: MIT */
/*
 * Cells of notebooks, which have no file: what IPython calls one, and what it says of it to people.
 *
 *   <ipython-input-2-0f1e2d>           IPython in a terminal, and ipykernel before 6: "Cell In[2]"
 *   /tmp/ipykernel_4711/3947229.py     ipykernel: named by a hash of the cell's text, so that the
 *                                      number is not known: "Cell 3947229"
 *
 * IPython.core.compilerop.code_name, ipykernel.compiler.get_file_name.
 */
#ifndef CW_BASE_CELL_NAME_H
#define CW_BASE_CELL_NAME_H

/* Replaces the name of a cell's code in place, by a shorter one; other names stay. Returns it. */
char *cw_cell_name(char *file);

#endif
