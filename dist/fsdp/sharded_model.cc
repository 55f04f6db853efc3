#include "dist/fsdp/sharded_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/fsdp/arena_slots.h"
#include "dist/fsdp/sharded_unit.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {

namespace {

const char* name(ShardStrategy strategy) {
  switch (strategy) {
    case ShardStrategy::kFullShard:
      return "FULL_SHARD";
    case ShardStrategy::kShardGradOp:
      return "SHARD_GRAD_OP";
    case ShardStrategy::kShardOptimizer:
      return "SHARD_OPTIMIZER";
    case ShardStrategy::kHybridShard:
      return "HYBRID_SHARD";
  }
  return "";
}

std::string_view name(const std::optional<DType>& dtype) {
  return dtype ? lockstep::name(*dtype) : "the parameters' dtype";
}

void check_options(const ShardOptions& options, const ProcessGroup& group) {
  LS_CHECK(options.prefetch_bytes >= 0, DistError,
           "[fully_shard] prefetch_bytes: expected at least 0, got {}.", options.prefetch_bytes);
  const bool is_hybrid = options.strategy == ShardStrategy::kHybridShard;
  LS_CHECK(is_hybrid || options.shard_size == 0, DistError,
           "[fully_shard] shard_size: expected it with HYBRID_SHARD alone, got {}.",
           options.shard_size);
  LS_CHECK(!is_hybrid || (options.shard_size > 0 && group.size() % options.shard_size == 0),
           DistError,
           "[fully_shard] shard_size: expected a divisor of the {} ranks, which form groups of so "
           "many, got {}.",
           group.size(), options.shard_size);
  LS_CHECK(
      !options.reduce_dtype || options.tree_leaves == 0, DistError,
      "[fully_shard] reduce_dtype: sums over leaves keep the bits of one rank, which a narrower "
      "dtype on the way would change. Leave one of them out.");
  LS_CHECK(options.tree_leaves == 0 || !options.average, DistError,
           "[fully_shard] average: a sum over leaves is divided by what the leaves are of, not by "
           "the number of ranks. Divide it by the number of samples.");
  LS_CHECK(options.tree_leaves == 0 || options.tree_leaves >= group.size(), DistError,
           "[fully_shard] tree_leaves: expected at least one for each of the {} ranks, got {}.",
           group.size(), options.tree_leaves);
  LS_CHECK(
      !options.uneven_passes || options.accumulates || options.tree_leaves > 0, DistError,
      "[fully_shard] uneven_passes: expected accumulates or tree_leaves with it, without which "
      "every backward is summed over the ranks.");
  LS_CHECK(options.tree_leaves > 0 || options.leaves.size() == 1, DistError,
           "[fully_shard] leaves: without tree_leaves expected one, as gradients are added as they "
           "come, got {}.",
           options.leaves.size());
}

void check_parameter(const NamedTensor& each, const Tensor& first, const ProcessGroup& group) {
  LS_CHECK(each.tensor.device().type != DeviceType::kMeta || group.plans(), DeviceError,
           "[fully_shard] parameter {} {} is on meta: expected one with values. Give it memory and "
           "values first.",
           each.name, each.tensor.shape());
  LS_CHECK(each.tensor.device() == first.device(), DeviceError,
           "[fully_shard] parameter {}: expected it on {}, as the first, got {}. Move the model to "
           "one device.",
           each.name, to_string(first.device()), to_string(each.tensor.device()));
  LS_CHECK(each.tensor.dtype() == first.dtype(), DTypeError,
           "[fully_shard] parameter {}: expected {}, as the first, got {}. Convert it, or leave it "
           "out (ShardOptions::ignored).",
           each.name, lockstep::name(first.dtype()), lockstep::name(each.tensor.dtype()));
  LS_CHECK(
      each.tensor.is_contiguous() && each.tensor.is_leaf(), ShapeError,
      "[fully_shard] parameter {}: expected a dense, row-major leaf, got sizes {} with strides "
      "{}. Register contiguous() tensors.",
      each.name, each.tensor.shape(), to_string(each.tensor.strides()));
}

void check_offload(Device device) {
  LS_CHECK(is_asynchronous(device.type), DeviceError,
           "[fully_shard] cpu_offload: the parameters are on {}, whose memory is the host's or has "
           "no streams. Expected them on a device such as cuda:0.",
           to_string(device));
}

bool is_ignored(const Tensor& tensor, const ShardOptions& options) {
  return std::ranges::any_of(options.ignored,
                             [&](const Tensor& each) { return each.is_same(tensor); });
}

}  // namespace

ShardedModel::ShardedModel(ShardableModule root, std::vector<ShardableModule> units,
                           ProcessGroup& group, const ShardOptions& options)
    : group_(group), options_(options), times_(kCPU) {
  check_options(options_, group_);
  add_units(root, units);
  times_ = StepTimes(device_);
  list_parts(root.parameters);
  list_blocks();
}

ShardedModel::~ShardedModel() {
  for (const std::function<void()>& undo : undo_) undo();
  for (HookHandle& hook : hooks_) hook.remove();
}

void ShardedModel::make_groups(int size) {
  const auto subgroup = [&](int first, int step, int count, const std::string& name) {
    std::vector<int> ranks;
    for (int i = 0; i < count; ++i) ranks.push_back(first + i * step);
    std::unique_ptr<ProcessGroup> group = group_.subgroup(ranks, group_.name() + name);
    if (group) group->set_timeout(group_.timeout());
    return group;
  };
  // Every rank makes all groups with the others.
  const int count = group_.size() / size, own = group_.rank() / size;
  shards_ = &group_;
  for (int i = 0; i < count; ++i) {
    if (count > 1) {
      auto shards = subgroup(i * size, 1, size, fmt::format(".shards{}", i));
      if (i == own) own_shards_ = std::move(shards);
    }
    auto gathers = subgroup(i * size, 1, size, count > 1 ? fmt::format(".gather{}", i) : ".gather");
    if (i == own) gathers_ = std::move(gathers);
  }
  if (count == 1) return;
  shards_ = own_shards_.get();
  for (int i = 0; i < size; ++i) {
    auto replicas = subgroup(i, size, count, fmt::format(".replicas{}", i));
    if (i == group_.rank() % size) replicas_ = std::move(replicas);
  }
}

/// Gives each parameter to the unit that alone has it, or to the root.
void ShardedModel::add_units(const ShardableModule& root,
                             const std::vector<ShardableModule>& modules) {
  LS_CHECK(!root.parameters.empty(), ShapeError,
           "[fully_shard] the module has no parameters: expected at least one.");
  std::map<const TensorImpl*, int> users;
  for (const ShardableModule& module : modules) {
    for (const NamedTensor& each : module.parameters) ++users[each.tensor.impl()];
  }
  const Tensor& first = root.parameters.front().tensor;
  device_ = first.device();
  if (options_.cpu_offload && !group_.plans()) {
    check_offload(device_);
    host_copies_.emplace(device_);  // none of the pool's, which others may use too
  }
  std::unordered_map<const TensorImpl*, std::string> names;
  for (const NamedTensor& each : root.parameters) names.emplace(each.tensor.impl(), each.name);
  const auto full_name = [&](const Tensor& tensor) {
    const auto found = names.find(tensor.impl());
    LS_CHECK(found != names.end(), DistError,
             "[fully_shard] a unit has a parameter {} that the module has not: expected units of "
             "the module itself.",
             to_string(tensor));
    return found->second;
  };

  std::vector<std::pair<const ShardableModule*, std::vector<NamedTensor>>> lists(1);
  lists[0].first = &root;
  std::set<const TensorImpl*> taken;
  for (const ShardableModule& module : modules) {
    std::vector<NamedTensor> own;
    for (const NamedTensor& each : module.parameters) {
      if (users[each.tensor.impl()] > 1 || is_ignored(each.tensor, options_)) continue;
      own.push_back({full_name(each.tensor), each.tensor});
      taken.insert(each.tensor.impl());
    }
    if (!own.empty()) lists.emplace_back(&module, std::move(own));
  }
  if (options_.gather_dtype) {
    // Vectors first: they are gathered as they are, matrices as casts.
    for (size_t i = 1; i < lists.size(); ++i) {
      std::ranges::stable_partition(lists[i].second,
                                    [](const NamedTensor& each) { return each.tensor.dim() < 2; });
    }
  }
  for (const NamedTensor& each : root.parameters) {
    if (taken.contains(each.tensor.impl()) || is_ignored(each.tensor, options_)) continue;
    lists[0].second.push_back(each);
  }

  const int shard_size = options_.shard_size > 0 ? options_.shard_size : group_.size();
  std::string text = fmt::format(
      "strategy {}\nranks of a shard {}\nleaves {}\naverage {}\n"
      "gathered in {}\nsent in {}\n",
      name(options_.strategy), shard_size, options_.tree_leaves, options_.average,
      name(options_.gather_dtype), name(options_.reduce_dtype));
  for (const auto& [module, own] : lists) {
    for (const NamedTensor& each : own) check_parameter(each, first, group_);
    text += fmt::format("unit \"{}\"\n{}", module->name, description(own));
  }
  require_same(group_, "fully_shard", "model", text, at_start(group_));
  make_groups(shard_size);
  if (!options_.uneven_passes && options_.tree_leaves == 0) {
    std::vector<UnitSize> sizes;
    for (const auto& [module, own] : lists) sizes.push_back(size_of_unit(own, shards_->size()));
    const ArenaSlots slots = arena_slots(options_, sizes, first.dtype());
    gather_arenas_.emplace(*gathers_, device_, slots.gathers);
    sum_arenas_.emplace(*shards_, device_, slots.sums);
  }

  // Unless all ranks have all parameters, those of one unit after the other get memory, and lose it
  // but for this rank's part.
  const bool own_are_here = std::ranges::none_of(
      root.parameters, [](const NamedTensor& each) { return has_no_memory(each.tensor); });
  const std::vector<std::string> here =
      all_gather_texts(group_, own_are_here ? "here" : "", at_start(group_));
  const bool are_here =
      std::ranges::none_of(here, [](const std::string& each) { return each.empty(); });
  summoned_ = are_here;
  const std::optional<Stream> host_copies =
      host_copies_ ? std::optional(host_copies_->get()) : std::nullopt;
  const GradientSumOptions sums{.rows = options_.tree_leaves > 0 ? stack_depth(options_.leaves) : 1,
                                .deal = options_.tree_leaves > 0
                                            ? LeafDeal::even(options_.tree_leaves, group_.size())
                                            : LeafDeal(),
                                .average = options_.average,
                                .send_dtype = options_.reduce_dtype,
                                .host_copies = host_copies,
                                .arenas = sum_arenas_ ? &*sum_arenas_ : nullptr};
  for (auto& [module, own] : lists) {
    UnitValuesOptions how{.tensors = first.options(),
                          .rank = shards_->rank(),
                          .ranks = shards_->size(),
                          .stays_whole = keeps_whole(),
                          .host_copies = host_copies,
                          .fill = options_.fill,
                          .arenas = gather_arenas_ ? &*gather_arenas_ : nullptr};
    if (!units_.empty()) how.gather_dtype = options_.gather_dtype;
    units_.push_back(std::make_unique<Unit>(module->name, std::move(own), how, sums));
    if (!are_here) {
      units_.back()->values.mark_changed();
      units_.back()->values.release();
    }
    watch(static_cast<uint32_t>(units_.size() - 1), *module);
  }
}

/// Has the unit's module and the backward tell of their passes.
void ShardedModel::watch(uint32_t unit, const ShardableModule& module) {
  undo_.push_back(module.watch(
      [this, unit] { before_forward(unit); },
      [this, unit](std::span<const Tensor> outputs) { after_forward(unit, outputs); }));
  const std::vector<NamedTensor>& parameters = units_[unit]->values.parameters();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    places_.emplace(parameters[i].tensor.impl(), Place{unit, i});
    if (!units_[unit]->gradients.is_trained(i)) continue;
    // Hooks of the accumulation node: hooks of the tensor would also run for grad().
    hooks_.push_back(register_prehook(*gradient_edge(parameters[i].tensor).node,
                                      [this, unit](std::span<Tensor>) { gradient_comes(unit); }));
    hooks_.push_back(register_post_accumulate_grad_hook(
        parameters[i].tensor, [this, unit, i](const Tensor&) { gradient_arrived(unit, i); }));
  }
}

std::optional<ShardedModel::Place> ShardedModel::find(const Tensor& parameter) const {
  const auto found = places_.find(parameter.impl());
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

/// Lists the trained parameters and this rank's parts of them.
void ShardedModel::list_parts(const std::vector<NamedTensor>& parameters) {
  const NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters) {
    const std::optional<Place> place = find(parameter.tensor);
    if (!place || !units_[place->unit]->gradients.is_trained(place->index)) continue;
    trained_.push_back({parameter, *place});
  }
  for (const Trained& trained : trained_) {
    Unit& unit = *units_[trained.place.unit];
    const auto own = unit.values.layout().slice(trained.place.index, shards_->rank());
    part_of_.push_back(own ? static_cast<int64_t>(parts_.size()) : -1);
    if (!own) continue;
    unit.parts.push_back(static_cast<uint32_t>(parts_.size()));
    const bool is_vector = trained.parameter.tensor.dim() < 2;
    const auto part = [&](const Tensor& shard) {
      const Tensor run = slice(shard, 0, own->offset, own->offset + own->size());
      return is_vector ? run : run.view({1, own->size()});
    };
    parts_.push_back({trained.parameter.name, part(unit.values.shard())});
    gradients_.push_back(part(unit.gradients.sums()));
  }
}

/// Finds where a gather of all ranks' numbers of blocks has those of each block of the model.
void ShardedModel::list_blocks() {
  struct Block {
    int64_t rank;
    int64_t number;
  };
  std::vector<Block> found;
  std::vector<int64_t> next(static_cast<size_t>(shards_->size()));
  for (const Trained& trained : trained_) {
    const ShardLayout& layout = units_[trained.place.unit]->values.layout();
    const int64_t blocks = blocks_of(trained.parameter.tensor.numel());
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t at = layout.offset(trained.place.index) + block * kShardBlock;
      const int64_t rank = at / layout.shard_elements();
      found.push_back({rank, next[static_cast<size_t>(rank)]++});
    }
  }
  most_blocks_ = std::ranges::max(next);
  const Tensor indices = empty({static_cast<int64_t>(found.size())}, {DType::kI64, kCPU});
  auto* const index = indices.data<int64_t>();
  for (size_t i = 0; i < found.size(); ++i) {
    index[i] = found[i].rank * most_blocks_ + found[i].number;
  }
  block_places_ = indices.to(device_);
}

Tensor ShardedModel::blocks_of_all(const Tensor& own) const {
  const NoGradGuard no_grad;
  const Tensor padded = zeros({most_blocks_}, {own.dtype(), device_});
  slice(padded, 0, 0, own.numel()).copy_(own);
  const Tensor all = empty({most_blocks_ * shards_->size()}, padded.options());
  shards_->all_gather(all, padded).wait();
  return index_select(all, 0, block_places_);
}

void ShardedModel::wait_for_host_copies() const {
  if (host_copies_) host_copies_->get().synchronize();
}

// --- all parameters at once ----------------------------------------------------------------------

void ShardedModel::summon_full_parameters() {
  for (const auto& unit : units_) {
    if (unit->values.gathers_casts()) unit->values.release();
    unit->values.start_gather(*gathers_, {.as_they_are = true, .to_stay = true});
  }
  for (const auto& unit : units_) unit->values.finish_gather();
  wait_for_host_copies();
  summoned_ = true;
}

void ShardedModel::release_full_parameters(bool changed) {
  if (!summoned_) return;
  for (const auto& unit : units_) {
    if (changed) {
      unit->values.take_from_parameters();
      unit->values.mark_changed();
    }
    unit->values.release();
  }
  summoned_ = false;
}

void ShardedModel::abandon_values() noexcept {
  for (const auto& unit : units_) unit->values.abandon();
}

void ShardedModel::on_reduced(
    std::function<void(std::span<const uint32_t> parts, const std::vector<Tensor>& gradients)>
        then) {
  LS_CHECK(options_.tree_leaves == 0, DistError,
           "[fully_shard] on_reduced: expected no tree_leaves, whose sums are complete after the "
           "step's last backward alone.");
  on_reduced_ = std::move(then);
}

const std::string& ShardedModel::unit_name(size_t unit) const {
  return units_[unit]->values.name();
}

int64_t ShardedModel::unit_bytes(size_t unit) const { return units_[unit]->values.bytes(); }

int64_t ShardedModel::parameter_bytes() const {
  int64_t bytes = 0;
  for (const auto& unit : units_) {
    bytes += keeps_whole() ? unit->values.bytes() : unit->values.bytes() / shards_->size();
  }
  return bytes;
}

int64_t ShardedModel::gradient_bytes() const {
  int64_t bytes = 0;
  for (const auto& unit : units_) {
    if (unit->gradients.trained() > 0) bytes += unit->gradients.bytes() / shards_->size();
  }
  return bytes;
}

void ShardedModel::mark_changed() {
  for (const auto& unit : units_) {
    unit->values.mark_changed();
    unit->values.values_given();
  }
}

std::vector<ShardRun> ShardedModel::runs(int rank) const {
  const NoGradGuard no_grad;
  std::vector<ShardRun> result;
  for (const auto& unit : units_) {
    const UnitValues& values = unit->values;
    for (const ShardSlice& each : values.layout().slices(shard_rank(rank))) {
      ShardRun run{values.parameters()[each.parameter], each.first, each.end, {}};
      if (rank == group_.rank()) {
        run.values = slice(values.shard(), 0, each.offset, each.offset + each.size());
      }
      result.push_back(std::move(run));
    }
  }
  return result;
}

// --- one tensor at a time ------------------------------------------------------------------------

/// Calls visit(rank, its run of `whole`) for each rank of `shards_` that has a part of the
/// parameter.
template <class Visit>
void ShardedModel::each_run(const Place& place, const Tensor& whole, const Visit& visit) const {
  const ShardLayout& layout = units_[place.unit]->values.layout();
  const Tensor flat = whole.view({-1});
  for (int rank = 0; rank < shards_->size(); ++rank) {
    const auto part = layout.slice(place.index, rank);
    if (part) visit(rank, slice(flat, 0, part->first, part->end));
  }
}

/// `own`: this rank's part of the tensor of that place, if it has one.
Tensor ShardedModel::collect(const Place& place, const Tensor& own, int root) const {
  const NoGradGuard no_grad;
  if (root / shards_->size() != group_.rank() / shards_->size()) return {};  // other replicas
  const int root_shard = shard_rank(root);
  if (group_.rank() != root) {
    if (own.defined()) gathers_->send(own.view({-1}).to(device_), root_shard).wait();
    return {};
  }
  const Tensor& parameter = units_[place.unit]->values.parameters()[place.index].tensor;
  Tensor whole = empty(parameter.sizes(), parameter.options());
  each_run(place, whole, [&](int rank, const Tensor& run) {
    if (rank == root_shard) {
      run.copy_(own.view({-1}));
    } else {
      gathers_->recv(run, rank).wait();
    }
  });
  return whole;
}

Tensor ShardedModel::collect(const Tensor& parameter, int root) const {
  const std::optional<Place> place = find(parameter);
  if (summoned_ || !place) return parameter;
  const UnitValues& values = units_[place->unit]->values;
  const auto own = values.layout().slice(place->index, shards_->rank());
  return collect(*place,
                 own ? slice(values.shard(), 0, own->offset, own->offset + own->size()) : Tensor(),
                 root);
}

std::optional<ShardSlice> ShardedModel::slice_of(size_t number, int shard) const {
  const Place& place = trained_[number].place;
  return units_[place.unit]->values.layout().slice(place.index, shard);
}

Tensor ShardedModel::own_part(size_t number, const std::vector<Tensor>& parts) const {
  const int64_t part = part_of_[number];
  return part < 0 ? Tensor() : parts[static_cast<size_t>(part)];
}

Tensor ShardedModel::collect_parts(size_t number, const std::vector<Tensor>& parts,
                                   int root) const {
  return collect(trained_[number].place, own_part(number, parts), root);
}

/// Receives into `part`, which may be on the host.
void ShardedModel::receive(const Tensor& part, int from) const {
  const Tensor there =
      part.device() == device_ ? part : empty(part.sizes(), {part.dtype(), device_});
  group_.recv(there, from).wait();
  if (!there.is_same(part)) part.copy_(there);
}

void ShardedModel::distribute_parts(size_t number, const Tensor& whole,
                                    const std::vector<Tensor>& parts, int root) const {
  const NoGradGuard no_grad;
  const Tensor own = own_part(number, parts);
  if (group_.rank() != root) {
    if (own.defined()) receive(own.view({-1}), root);
    return;
  }
  each_run(trained_[number].place, whole, [&](int shard, const Tensor& run) {
    for (int rank = shard; rank < group_.size(); rank += shards_->size()) {
      if (rank == root) {
        own.view({-1}).copy_(run);
      } else {
        group_.send(run.to(device_), rank).wait();
      }
    }
  });
}

}  // namespace lockstep::dist
