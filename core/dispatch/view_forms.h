#pragma once

#include <utility>
#include <vector>

#include "core/dispatch/operator.h"
#include "core/tensor/outputs.h"

namespace lockstep {

/// Gives `self` itself another geometry; one that differs counts as a change in place.
void set_geometry(const Operator& op, const Tensor& self, const ViewSpec& spec);

/// View operators: the geometry function says where the result lies, the wrapper aliases.
/// Other signatures have no geometry function, and naming it is all that they can do.
template <class Signature>
struct ViewAdapters {
  struct Geometry;
};

template <class... A>
struct ViewAdapters<Tensor(const Tensor&, A...)> {
  using Geometry = ViewSpec (*)(const Tensor&, A...);
  static Tensor call(const Operator& op, KeySet, const Tensor& self, A... arguments) {
    ViewSpec spec = reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...);
    const ViewOrigin origin = detail::thread_keys.excluded.has(Key::kAutograd)
                                  ? ViewOrigin::kNoGrad
                                  : ViewOrigin::kRecorded;
    return alias_moved(self, std::move(spec.sizes), std::move(spec.strides), spec.offset,
                       spec.dtype.value_or(self.dtype()), true, origin);
  }
  static const Tensor& call_in_place(const Operator& op, KeySet, const Tensor& self,
                                     A... arguments) {
    set_geometry(op, self,
                 reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...));
    return self;
  }
};
template <class... A>
struct ViewAdapters<std::vector<Tensor>(const Tensor&, A...)> {
  using Geometry = std::vector<ViewSpec> (*)(const Tensor&, A...);
  static std::vector<Tensor> call(const Operator& op, KeySet, const Tensor& self, A... arguments) {
    std::vector<Tensor> views;
    for (const ViewSpec& spec :
         reinterpret_cast<Geometry>(op.definition())(self, static_cast<A>(arguments)...)) {
      views.push_back(alias_tensor(self, spec.sizes, spec.strides, spec.offset,
                                   spec.dtype.value_or(self.dtype()), true,
                                   ViewOrigin::kMultiOutput));
    }
    return views;
  }
};

}  // namespace lockstep
