#include "train/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <sstream>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/check.h"
#include "core/ops/factory.h"

namespace lockstep::train {
namespace {

/// The leader writes checkpoints and samples while the others wait; one that ends is noticed all
/// the same.
constexpr std::chrono::hours kLeaderMayTake{24};
/// Before ranks have compared what they train, they read files and make models of their own.
constexpr std::chrono::minutes kStartMayTake{10};

std::vector<std::string> all_gather_texts(dist::ProcessGroup& group, const std::string& text) {
  const auto size = static_cast<size_t>(group.size());
  const dist::CollectiveOptions options{
      .timeout = std::max<std::chrono::milliseconds>(kStartMayTake, group.timeout())};
  const Tensor length = empty({1}, DType::kI64).fill_(static_cast<int64_t>(text.size()));
  const Tensor lengths = empty({group.size()}, DType::kI64);
  group.all_gather(lengths, length, options).wait();
  const auto* counts = lengths.data<int64_t>();
  const int64_t longest = *std::max_element(counts, counts + size);
  const Tensor own = empty({longest}, DType::kU8).zero_();
  if (!text.empty()) std::memcpy(own.data(), text.data(), text.size());
  const Tensor all = empty({group.size() * longest}, DType::kU8);
  group.all_gather(all, own, options).wait();
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < size; ++rank) {
    texts.emplace_back(static_cast<const char*>(all.data()) + static_cast<int64_t>(rank) * longest,
                       static_cast<size_t>(counts[rank]));
  }
  return texts;
}

struct Difference {
  std::string first;
  std::string second;
};

/// The first lines that are not equal.
Difference first_difference(const std::string& first, const std::string& second) {
  std::istringstream a(first);
  std::istringstream b(second);
  for (;;) {
    Difference lines{"nothing more", "nothing more"};
    const bool more_a = static_cast<bool>(std::getline(a, lines.first));
    const bool more_b = static_cast<bool>(std::getline(b, lines.second));
    if (!more_a) lines.first = "nothing more";
    if (!more_b) lines.second = "nothing more";
    if (lines.first != lines.second || (!more_a && !more_b)) return lines;
  }
}

std::vector<Tensor> state_of(Trainer& trainer) {
  std::vector<Tensor> tensors;
  for (const nn::StoredParameter& each : trainer.task().model().stored_parameters()) {
    tensors.push_back(each.tensor);
  }
  for (const nn::StoredParameter& each : trainer.optimizer().state()) {
    tensors.push_back(each.tensor);
  }
  return tensors;
}

/// A stored tensor may be a view: its elements go through a copy of their own.
void broadcast(dist::ProcessGroup& group, const Tensor& tensor) {
  if (tensor.is_contiguous()) return group.broadcast(tensor.detach(), 0).wait();
  const Tensor copy = tensor.detach().contiguous();
  group.broadcast(copy, 0).wait();
  if (group.rank() != 0) tensor.detach().copy_(copy);
}

}  // namespace

Replicas::Replicas(dist::ProcessGroup* group)
    : group_(group != nullptr && group->size() > 1 ? group : nullptr) {}

void Replicas::require_same(const char* what, const std::string& text) {
  if (group_ == nullptr) return;
  const std::vector<std::string> texts = all_gather_texts(*group_, text);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const Difference lines = first_difference(texts[0], texts[rank]);
    dist::finish_together(*group_);
    throw MismatchError(fmt::format(
        "[train] rank {} has another {} than rank 0: expected \"{}\", got \"{}\". Start all ranks "
        "alike.",
        rank, what, lines.first, lines.second));
  }
}

void Replicas::require_same_model(const nn::Module& model) {
  if (group_ == nullptr) return;
  std::string text;
  for (const nn::StoredParameter& each : model.stored_parameters()) {
    text +=
        fmt::format("{} {} {}\n", each.name, to_string(each.tensor.dtype()), each.tensor.shape());
  }
  require_same("model", text);
}

Replicas::Next Replicas::agree(const Next& next) {
  const Tensor told = empty({2}, DType::kI64);
  auto* const words = told.data<int64_t>();
  words[0] = static_cast<int64_t>(next.act);
  words[1] = next.max_batches;
  group_->broadcast(told, 0, {.timeout = kLeaderMayTake}).wait();
  return {static_cast<Act>(words[0]), words[1]};
}

void Replicas::announce_step() {
  if (group_ != nullptr) agree({Act::kStep});
}

void Replicas::announce_evaluation(int64_t max_batches) {
  if (group_ != nullptr) agree({Act::kEvaluation, max_batches});
}

void Replicas::announce_state(Trainer& trainer) {
  if (group_ == nullptr) return;
  agree({Act::kState});
  share_state(trainer);
}

void Replicas::announce_end() {
  if (group_ != nullptr) agree({Act::kEnd});
}

void Replicas::share_state(Trainer& trainer) {
  const NoGradGuard no_grad;
  for (const Tensor& tensor : state_of(trainer)) broadcast(*group_, tensor);
  GradScalerState scale = trainer.scaler().state();
  const Tensor numbers = empty({8}, DType::kF64);
  auto* const values = numbers.data<double>();
  const std::array<double, 8> told = {static_cast<double>(trainer.position().step),
                                      static_cast<double>(trainer.position().batch),
                                      static_cast<double>(trainer.optimizer().steps()),
                                      scale.scale,
                                      scale.growth_factor,
                                      scale.backoff_factor,
                                      static_cast<double>(scale.growth_interval),
                                      static_cast<double>(scale.growth_tracker)};
  std::ranges::copy(told, values);
  group_->broadcast(numbers, 0).wait();
  trainer.set_position({static_cast<int64_t>(values[0]), static_cast<int64_t>(values[1])});
  trainer.optimizer().set_steps(static_cast<int64_t>(values[2]));
  trainer.scaler().load_state({values[3], values[4], values[5], static_cast<int64_t>(values[6]),
                               static_cast<int64_t>(values[7])});
}

void Replicas::follow(Trainer& trainer, const std::function<void(const StepResult&)>& after_step) {
  for (;;) {
    const Next next = agree({Act::kEnd});
    switch (next.act) {
      case Act::kStep: {
        const StepResult result = trainer.step();
        if (after_step) after_step(result);
        break;
      }
      case Act::kEvaluation:
        (void)trainer.evaluate(next.max_batches);
        break;
      case Act::kState:
        share_state(trainer);
        break;
      case Act::kEnd:
        return;
    }
  }
}

}  // namespace lockstep::train
