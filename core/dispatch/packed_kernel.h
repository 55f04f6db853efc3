#pragma once

#include "core/dispatch/value.h"
#include "core/tensor/dispatch_key.h"
#include "core/tensor/kernel_arguments.h"

namespace lockstep {

class Operator;

/// One parameter of a structured kernel without its C++ type. Borrows what it was made from.
struct PackedArgument {
  std::span<const TensorArg> tensors;  ///< of a `Tensor` one (undefined if absent), of a list all
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

/// What the wrapper of structured operators passes to a packed kernel: arguments checked and
/// results allocated as for any kernel, borrowed for the call.
struct PackedCall {
  const Operator& op;
  Key backend;
  Device device;
  std::span<const Out* const> results;  ///< results that are not written arguments, in order
  std::span<const PackedArgument> arguments;
  void* data;  ///< the pointer registered with the kernel
};

/// A structured kernel for any operator, for code that has schemas but no C++ signatures.
using PackedKernel = void (*)(const PackedCall& call);

}  // namespace lockstep
