/* The options of ./dev prove. */
#ifndef PROVE_OPTIONS_H
#define PROVE_OPTIONS_H

#include "runs.h"

typedef struct options {
    const char *operations, *dtypes, *levels;    /* lists */
    run_settings settings;
    int n_threads;
    bool quiet, list;
    const char *report, *state, *digests, *write_digests;                 /* files; NULL without */
} options;

/* False, with a message, where they are wrong; help and wrong syntax do not return. */
bool options_parse(int argc, char **argv, options *o);
/* The chosen primitives and dtypes. False, with a message, where a name is wrong. Puts the levels into the settings. */
bool options_choose(const char *command, options *o, bool *operations, bool *dtypes);

#endif
