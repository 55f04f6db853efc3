#include "train/sync_batch_norm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "core/base/check.h"
#include "dist/ddp/sync_batch_norm.h"
#include "dist/rendezvous/rank_list.h"
#include "nn/image_layers.h"

namespace lockstep::train {

int64_t convert_sync_batchnorm(nn::Module& model, dist::ProcessGroup& group) {
  std::vector<nn::BatchNorm2d*> found;
  model.for_each([&](nn::Module& module) {
    if (auto* const norm = dynamic_cast<nn::BatchNorm2d*>(&module)) found.push_back(norm);
  });
  if (found.empty() || group.size() == 1) return std::ssize(found);
  const std::shared_ptr<dist::ProcessGroup> own =
      group.subgroup(dist::every_rank(group.size()), "batch norm");
  for (nn::BatchNorm2d* const norm : found) {
    norm->set_training_norm([own](const Tensor& x, const Tensor& weight, const Tensor& bias,
                                  const Tensor& running_mean, const Tensor& running_var,
                                  double momentum, double epsilon) {
      return dist::sync_batch_norm(x, weight, bias, running_mean, running_var, true, momentum,
                                   epsilon, own.get());
    });
  }
  return std::ssize(found);
}

void require_equal_shares(const std::vector<int64_t>& micro_batches) {
  LS_CHECK(std::ranges::adjacent_find(micro_batches, std::not_equal_to<>()) == micro_batches.end(),
           ConfigError,
           "[train] parallel.sync_batch_norm: expected every rank to do as many micro-batches of a "
           "step, since those of all ranks are normalised together, got {}. Start a number of "
           "ranks that divides train.leaves, or set train.leaves to 1.",
           fmt::join(micro_batches, ", "));
}

}  // namespace lockstep::train
