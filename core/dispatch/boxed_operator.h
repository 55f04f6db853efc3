#pragma once

#include "core/base/function_ref.h"
#include "core/dispatch/parameters.h"

namespace lockstep {

/// A shape rule that takes its arguments as values: the definition of a structured operator that
/// has a schema and no C++ signature. Its specs are for the results that are no argument.
using BoxedRule = Outputs (*)(const Operator& op, std::span<const Value> arguments);

/// The adapters of an operator without a C++ signature, which is called by name
/// (core/dispatch/call_op.h) or boxed. Its definition is a BoxedRule (structured) or a BoxedKernel
/// (composite: the body), its kernels are packed. The wrapper of structured ones does what
/// core/dispatch/structured.h does for the others. It casts floating results from the dtype that
/// the rule computes in, and takes arguments of type `Tensor(a!)`: the kernel changes them, at once
/// or through a copy that is written back, and their version counters are bumped.
OpAdapters boxed_adapters(const Schema& schema);

/// Calls `kernel` with the arguments of a call on `backend`: on one device, with strides that it
/// takes, and without results, which it makes. `data` is for it. For operators without a rule,
/// which change no argument.
void run_dynamic_kernel(const Operator& op, Key backend, Strides strides,
                        std::span<const Value> arguments, void* data,
                        FunctionRef<void(const PackedCall&)> kernel);

/// Indices of the results that are no written argument, which a rule describes.
SmallVector<size_t, 4> fresh_results(const Schema& schema);

}  // namespace lockstep
