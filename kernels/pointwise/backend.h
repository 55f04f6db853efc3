#pragma once

// The files of this folder are compiled once for each backend: they say what each pointwise
// operator computes (kernels/functors.h and its neighbours) and in which lanes, the backend's
// `elementwise` how tensors are walked.

#include "core/library.h"
#include "kernels/lanes.h"
#include "kernels/number_operand.h"

#if defined(LS_POINTWISE_ON_CUDA)
#include "kernels/cuda/pointwise.h"
#define LS_POINTWISE_NAMESPACE lockstep::cuda
#define LS_POINTWISE_KERNEL(name, ...) LS_KERNEL(CUDA, name, __VA_ARGS__, Strides::kAny)
#else
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/zero_divisor.h"
#define LS_POINTWISE_NAMESPACE lockstep::cpu
#define LS_POINTWISE_KERNEL(name, ...) LS_KERNEL(CPU, name, __VA_ARGS__, Strides::kAny)
#endif
