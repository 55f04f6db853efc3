#pragma once

/// In front of functions that are compiled for GPUs, too, where nvcc compiles them.
#if defined(__CUDACC__)
#define LS_HOST_DEVICE __host__ __device__
#else
#define LS_HOST_DEVICE
#endif
