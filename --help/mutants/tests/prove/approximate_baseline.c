#define APPROXIMATIONS approximations_baseline
#define FILTERS filters_baseline
#include "approximate_body.h"
