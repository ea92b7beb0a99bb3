/* How the shapes of a layer's tensors fit together; a part of rates_layers.c. */
#ifndef ONELAUNCH_TOOLS_RATES_FIT_H
#define ONELAUNCH_TOOLS_RATES_FIT_H

#include "rates_layers.h"

/* From the sources to bases, views, and the shapes of results. */
bool rates_fit(rates_layer *layer, const rates_gates *gates, st_error *error);
/* Whether the stored result beside the activations has the shape of the one it is compared with. */
bool rates_fit_reference(const rates_layer *layer, int32_t index, st_error *error);

#endif
