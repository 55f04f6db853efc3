#pragma once

// Each family of pointwise operators is FAMILY.{h,cc,cu}: the header has its functors, what the
// operators compute; the .cc file, compiled once per backend, has the operators' kernels, and in
// which lanes they compute; the .cu file instantiates the functors for the GPU. The backend's
// `elementwise`, `copy_elements` and `fill_elements` define how tensors are traversed. Functors
// that other rooms use too are in kernels/common/functors.h.

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
