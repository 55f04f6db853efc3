#pragma once

#include "core/base/host_device.h"

// Marks a large function that nvcc does not inline: `ptxas` took half a minute for the copies of
// polygamma in all kernels.
#if defined(__CUDACC__)
#define LS_ONE_COPY __noinline__ LS_HOST_DEVICE
#else
#define LS_ONE_COPY
#endif
