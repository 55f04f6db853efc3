#pragma once

#include <source_location>
#include <string_view>

#include "core/dispatch/dispatcher.h"

namespace lockstep {

/// Makes a kernel record of a plain function; see LS_KERNEL.
template <class F>
KernelRecord kernel_record(Key key, F* function, Strides strides,
                           std::source_location where = std::source_location::current()) {
  KernelRecord record;
  record.key = key;
  record.function = reinterpret_cast<AnyFunction>(function);
  record.type = &typeid(F);
  record.strides = strides;
  record.site = {where.file_name(), where.line()};
  return record;
}

}  // namespace lockstep

#define LS_CONCAT_INNER(a, b) a##b
#define LS_CONCAT(a, b) LS_CONCAT_INNER(a, b)

/// Registers a plain function as the kernel of an operator on a backend:
/// `LS_KERNEL(CPU, "mm", mm, Strides::kMatrix);`
#define LS_KERNEL(backend, name, function, strides)                                    \
  static const ::lockstep::Registration LS_CONCAT(kernel_registration_, __COUNTER__) = \
      ::lockstep::dispatcher().register_kernel(                                        \
          name, ::lockstep::kernel_record(::lockstep::Key::k##backend, &function, strides))
