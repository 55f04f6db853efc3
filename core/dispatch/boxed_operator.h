#pragma once

#include "core/base/function_ref.h"
#include "core/dispatch/parameters.h"

namespace lockstep {

/// A shape rule that takes its arguments as values: the definition of a structured operator that
/// has a schema and no C++ signature. It describes only results that are not written arguments.
using BoxedRule = Outputs (*)(const Operator& op, std::span<const Value> arguments);

/// Returns the adapters of an operator without a C++ signature, which is called by name
/// (core/dispatch/call_op.h) or boxed. Its definition is a BoxedRule (structured) or a BoxedKernel
/// (composite: the body); its kernels are packed. The structured wrapper does what
/// core/dispatch/structured.h does for typed operators. In addition it casts floating results from
/// the dtype that the rule computes in, and accepts arguments of type `Tensor(a!)`: the kernel
/// changes them directly or in a copy that is written back, and their version counters are bumped.
OpAdapters boxed_adapters(const Schema& schema);

/// Calls `kernel` with the arguments of a call on `backend`, copied where the kernel does not
/// accept their strides or a device option moves the call elsewhere. `data` is passed to `kernel`,
/// which allocates the results itself. For operators that have no rule and change no argument.
void run_dynamic_kernel(const Operator& op, Key backend, Strides strides,
                        std::span<const Value> arguments, void* data,
                        FunctionRef<void(const PackedCall&)> kernel);

/// Indices of the results that are not written arguments: those that a BoxedRule describes.
SmallVector<size_t, 4> fresh_results(const Schema& schema);

}  // namespace lockstep
