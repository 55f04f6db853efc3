#pragma once

#include "core/dispatch/value.h"
#include "core/tensor/dispatch_key.h"
#include "core/tensor/kernel_arguments.h"

namespace lockstep {

class Operator;

/// One parameter of a structured kernel without its C++ type. It refers to what it was made from.
struct PackedArgument {
  std::span<const TensorArg> tensors;  ///< a `Tensor` is one, not defined when absent; a list all
  Value value;                         ///< arguments of other types

  PackedArgument() = default;
  PackedArgument(const In& in) : tensors(static_cast<const TensorArg*>(&in), 1) {}
  PackedArgument(InList list) : tensors(static_cast<const TensorArg*>(list.data()), list.size()) {}
  PackedArgument(OutList list) : tensors(static_cast<const TensorArg*>(list.data()), list.size()) {}
  template <class T>
  explicit PackedArgument(const T& v) : value(v) {}
};
static_assert(sizeof(In) == sizeof(TensorArg) && sizeof(Out) == sizeof(TensorArg),
              "lists of In and Out are read as lists of TensorArg");

/// What the wrapper of structured operators hands to a packed kernel: checked and allocated as for
/// any kernel, and borrowed for the call.
struct PackedCall {
  const Operator& op;
  Key backend;
  Device device;
  std::span<const Out* const> results;  ///< those that are no argument, in order
  std::span<const PackedArgument> arguments;
  void* data;  ///< as registered with the kernel
};

/// A structured kernel of any operator, for code that knows schemas but no C++ signatures.
using PackedKernel = void (*)(const PackedCall& call);

}  // namespace lockstep
