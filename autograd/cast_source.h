#pragma once

#include "core/base/scoped_value.h"
#include "core/tensor/tensor.h"

namespace lockstep {

/// Gives the casts that autocast would make of arguments.
class CastSource {
 public:
  /// `tensor` in `dtype`; undefined: autocast makes the cast.
  virtual Tensor cast(const Tensor& tensor, DType dtype) = 0;

 protected:
  ~CastSource() = default;
};

namespace detail {
inline thread_local constinit CastSource* cast_source = nullptr;
}  // namespace detail

/// While alive, the casts of this thread's arguments come from `source`, if it is not null.
class CastSourceGuard {
 public:
  [[nodiscard]] explicit CastSourceGuard(CastSource* source) noexcept
      : source_(detail::cast_source, source) {}

 private:
  ScopedValue<CastSource*> source_;
};

/// The cast that an operator of this thread would be given for `tensor`, an argument to be read in
/// `dtype`: one that is kept or prepared where there is one (autograd/autocast.h), recorded.
Tensor autocast_cast(const Tensor& tensor, DType dtype);

}  // namespace lockstep
