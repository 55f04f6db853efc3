#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/ops/factory/dlpack.h"

namespace lockstep {

/// Another library's tensor: float32 [2, 3] with the elements 0 to 5 unless it is changed. Counts
/// how often it was released.
template <class Form>
class ForeignDlpack {
 public:
  ForeignDlpack() {
    form.dl_tensor = {elements.data(), {dlpack::kDLCPU, 0}, 2, {dlpack::kDLFloat, 32, 1},
                      sizes.data(),    strides.data(),      0};
    form.manager_ctx = &released;
    form.deleter = [](Form* self) { ++*static_cast<std::atomic<int>*>(self->manager_ctx); };
    if constexpr (std::is_same_v<Form, dlpack::DLManagedTensorVersioned>) {
      form.version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
    }
  }
  ForeignDlpack(const ForeignDlpack&) = delete;
  ForeignDlpack& operator=(const ForeignDlpack&) = delete;

  dlpack::DLTensor* operator->() { return &form.dl_tensor; }

  std::array<float, 6> elements = {0, 1, 2, 3, 4, 5};
  std::vector<int64_t> sizes = {2, 3};
  std::vector<int64_t> strides = {3, 1};
  std::atomic<int> released = 0;
  Form form{};
};

using ForeignVersioned = ForeignDlpack<dlpack::DLManagedTensorVersioned>;
using ForeignUnversioned = ForeignDlpack<dlpack::DLManagedTensor>;

}  // namespace lockstep
