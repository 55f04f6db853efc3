#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace lockstep {

/// Functions in the order in which they were added, each with an id to remove it by. A removal
/// while the list runs takes effect from the next run on.
template <class Hook>
class HookList {
 public:
  void add(uint64_t id, Hook hook) { hooks_.emplace_back(id, std::move(hook)); }
  void remove(uint64_t id) {
    std::erase_if(hooks_, [id](const auto& entry) { return entry.first == id; });
  }
  bool empty() const { return hooks_.empty(); }
  /// Calls `visit(hook)` for each. Works on a copy, so that hooks may add and remove hooks.
  template <class Visit>
  void each(Visit visit) const {
    const auto hooks = hooks_;
    for (const auto& entry : hooks) visit(entry.second);
  }

 private:
  std::vector<std::pair<uint64_t, Hook>> hooks_;
};

/// The hooks of one node; hooks.h documents the kinds. Shared with the handles, so it may outlive
/// the node.
struct NodeHooks : RefCounted {
  struct OnGradient {
    uint32_t output_nr;
    std::function<Tensor(const Tensor& grad)> call;
  };
  /// A computed tensor that keeps its gradient. Its destructor removes the entry.
  struct Retained {
    uint32_t output_nr;
    AutogradMeta* meta;
  };

  HookList<OnGradient> tensor;
  std::vector<Retained> retained;
  HookList<std::function<void(std::span<Tensor>)>> before;
  HookList<std::function<void(std::span<Tensor>, std::span<const Tensor>)>> after;
  HookList<std::function<void(const Tensor&)>> accumulated;

  void remove(uint64_t id) {
    tensor.remove(id);
    before.remove(id);
    after.remove(id);
    accumulated.remove(id);
  }
  void forget(const AutogradMeta* meta) {
    std::erase_if(retained, [meta](const Retained& entry) { return entry.meta == meta; });
  }
};

}  // namespace lockstep
