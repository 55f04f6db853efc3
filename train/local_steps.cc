#include "train/local_steps.h"

#include <utility>

#include "configs/run.pb.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "train/gradient_options.h"

namespace lockstep::train {

bool takes_local_steps(const config::RunConfig& config, const dist::ProcessGroup* group) {
  return group != nullptr && group->size() > 1 && config.parallel().has_local_sgd();
}

std::unique_ptr<dist::LocalSgd> make_local_sgd(const config::RunConfig& config,
                                               const nn::Module& model, dist::ProcessGroup* group) {
  if (!takes_local_steps(config, group)) return nullptr;
  LS_CHECK(config.checkpoint().files() != config::CheckpointConfig::WHOLE, ConfigError,
           "[train] checkpoint.files: WHOLE does not go with parallel.local_sgd: each rank has a "
           "state of its own, and writes it. Use SHARDS.");
  const config::LocalSgd& options = config.parallel().local_sgd();
  return std::make_unique<dist::LocalSgd>(
      trained_parameters(model), *group,
      dist::LocalSgdOptions{.inner_steps = options.inner_steps(),
                            .fragments = options.fragments(),
                            .delay_steps = options.delay_steps(),
                            .bits = static_cast<int>(options.bits()),
                            .learning_rate = options.outer().learning_rate(),
                            .momentum = options.outer().momentum()});
}

LocalState::LocalState(const dist::LocalSgd& local,
                       const std::vector<nn::StoredParameter>& optimizer)
    : local_(local) {
  using Of = dist::LocalSgd::State::Of;
  const std::vector<dist::NamedTensor>& parameters = local.parameters();
  for (const dist::NamedTensor& each : parameters) {
    of_rank_.push_back({"parameter." + each.name, each.tensor, {}});
  }
  for (const nn::StoredParameter& each : optimizer) {
    of_rank_.push_back({each.name, each.tensor, {}});
  }
  for (const dist::LocalSgd::State& state : local.state()) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      Item item{state.name + "." + parameters[i].name, state.tensors[i], {}};
      if (state.of == Of::kPart) item.part_of = i;
      (state.of == Of::kRank ? of_rank_ : shared_).push_back(std::move(item));
    }
  }
}

std::vector<nn::StoredParameter> LocalState::shapes(int world) const {
  std::vector<nn::StoredParameter> shapes;
  const auto add = [&](const std::string& prefix, const Item& item) {
    const Tensor& like = item.part_of ? local_.parameters()[*item.part_of].tensor : item.tensor;
    shapes.push_back({prefix + item.name, empty(like.sizes(), {DType::kF32, kMeta})});
  };
  for (int rank = 0; rank < world; ++rank) {
    for (const Item& each : of_rank_) add(fmt::format("rank{}.", rank), each);
  }
  for (const Item& each : shared_) add("", each);
  return shapes;
}

KeptRun LocalState::run(size_t number, const Item& item, int rank, int self) const {
  KeptRun run{number, 0, item.tensor.numel(), {}};
  if (item.part_of) {
    const dist::LocalSgd::Part part = local_.part_of(*item.part_of, rank);
    run.first = part.first;
    run.end = part.end;
  }
  if (rank == self) run.values = item.tensor.view({-1});
  return run;
}

std::vector<KeptRun> LocalState::runs(int rank, int from, int world, int self,
                                      bool all_shared) const {
  std::vector<KeptRun> runs;
  const size_t own = static_cast<size_t>(from) * of_rank_.size();
  for (size_t i = 0; i < of_rank_.size(); ++i) {
    runs.push_back(run(own + i, of_rank_[i], rank, self));
  }
  const size_t shared = static_cast<size_t>(world) * of_rank_.size();
  for (size_t i = 0; i < shared_.size(); ++i) {
    // What every rank has whole, the ranks write in turn.
    const bool is_own = i % static_cast<size_t>(world) == static_cast<size_t>(rank);
    if (all_shared || shared_[i].part_of || is_own) {
      runs.push_back(run(shared + i, shared_[i], rank, self));
    }
  }
  std::erase_if(runs, [](const KeptRun& each) { return each.first == each.end; });
  return runs;
}

std::vector<KeptRun> LocalState::written(int rank, int world, int self) const {
  return runs(rank, rank, world, self, /*all_shared=*/false);
}

std::vector<KeptRun> LocalState::read(int rank, int world, int self) const {
  return runs(rank, rank % world, world, self, /*all_shared=*/true);
}

}  // namespace lockstep::train
