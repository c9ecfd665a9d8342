/* SPDX-License-Identifier: MIT */
/* Libraries of hazards.test whose unloading takes as long as the program wants. With -DPYTHON it
 * has what an interpreter is known by. */
void (*at_unload)(void);

static void __attribute__((destructor)) unloaded(void)
{
    if (at_unload)
        at_unload();
}

#ifdef PYTHON
const unsigned long Py_Version = 0x030b04f0;
unsigned char _PyRuntime[1 << 16], PyCode_Type[512], PyUnicode_Type[512];

const char *Py_GetVersion(void)
{
    return "3.11.4";
}

void *_PyEval_EvalFrameDefault(void)
{
    return _PyRuntime;
}

void *PyGILState_GetThisThreadState(void)
{
    return 0;
}
#endif
