#pragma once

// The files of this folder are compiled once per backend: they define what each pointwise operator
// computes (kernels/common/functors.h and its neighbours) and in which lanes. The backend's
// `elementwise`, `copy_elements` and `fill_elements` define how tensors are traversed.

#include "core/dispatch/kernel.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_operand.h"

#if defined(LS_POINTWISE_ON_CUDA)
#include "kernels/cuda/factory/copy.h"
#include "kernels/cuda/pointwise.h"
#define LS_POINTWISE_NAMESPACE lockstep::cuda
#define LS_BACKEND_KERNEL(name, function, strides) LS_KERNEL(CUDA, name, function, strides)
#else
#include "kernels/cpu/factory/copy.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/zero_divisor.h"
#define LS_POINTWISE_NAMESPACE lockstep::cpu
#define LS_BACKEND_KERNEL(name, function, strides) LS_KERNEL(CPU, name, function, strides)
#endif

#define LS_POINTWISE_KERNEL(name, function) LS_BACKEND_KERNEL(name, function, Strides::kAny)
