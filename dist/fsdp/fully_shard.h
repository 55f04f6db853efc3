#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "dist/fsdp/sharded_model.h"

namespace lockstep::dist {

/// A module as ShardedModel sees it, through its public functions: named_parameters(), whose
/// elements have members `name` and `tensor`, register_forward_pre_hook, register_forward_hook and
/// path().
template <class Module>
ShardableModule shardable(Module& module) {
  ShardableModule result;
  result.name = module.path();
  for (const auto& each : module.named_parameters()) {
    result.parameters.push_back({each.name, each.tensor});
  }
  result.watch = [&module](std::function<void()> before,
                           std::function<void(std::span<const Tensor>)> after) {
    auto pre = module.register_forward_pre_hook(
        [before = std::move(before)](const auto&, std::span<Tensor>) { before(); });
    auto post = module.register_forward_hook(
        [after = std::move(after)](const auto&, std::span<const Tensor>,
                                   std::span<Tensor> outputs) { after(outputs); });
    return std::function<void()>([pre, post]() mutable {
      pre.remove();
      post.remove();
    });
  };
  return result;
}

/// Spreads the parameters of `module` over the ranks of `group`, in units: each of `units`, modules
/// below it in the order of forward (pointers), and the rest. All ranks must have the same values.
/// Collective; errors are those of ShardedModel.
template <class Module, class Units>
std::unique_ptr<ShardedModel> fully_shard(Module& module, const Units& units, ProcessGroup& group,
                                          const ShardOptions& options = {}) {
  std::vector<ShardableModule> list;
  for (const auto& unit : units) list.push_back(shardable(*unit));
  auto sharded = std::make_unique<ShardedModel>(shardable(module), std::move(list), group, options);
  sharded->release_full_parameters(true);
  return sharded;
}

/// Takes the blocks of a model as units: `model.sequence()` (nn/block_model.h).
template <class Model>
std::unique_ptr<ShardedModel> fully_shard(Model& model, ProcessGroup& group,
                                          const ShardOptions& options = {}) {
  return fully_shard(model, model.sequence(), group, options);
}

}  // namespace lockstep::dist
