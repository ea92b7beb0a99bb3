#define FUNCTIONS functions_baseline
#include "functions_body.h"
