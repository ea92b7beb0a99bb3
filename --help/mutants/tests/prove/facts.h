/* What a result depends on besides its options: the machine, the build, the libraries behind the reference. */
#ifndef PROVE_FACTS_H
#define PROVE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct prove_facts {
    char processor[160], architecture[80], system[160], reference[160];
    const char *compiler;
    char executable[17];                         /* XXH3-64 of the program, which has the library linked in */
    char date[32];                               /* UTC */
} prove_facts;

/* False, with a message, where the program cannot be read. */
bool facts_gather(const char *command, prove_facts *f);

#endif
