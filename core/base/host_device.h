#pragma once

/// Marks functions that nvcc compiles for both host and device; empty under other compilers.
#if defined(__CUDACC__)
#define LS_HOST_DEVICE __host__ __device__
#else
#define LS_HOST_DEVICE
#endif
