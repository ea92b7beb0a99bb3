/* erf, erfinv. */
#ifndef NUM_ERF_H
#define NUM_ERF_H

#include "num_erf32.h"
#include "num_erf64.h"
#include "num_erfinv32.h"
#include "num_erfinv64.h"

#endif
