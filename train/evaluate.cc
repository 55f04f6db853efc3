#include "train/evaluate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>
#include <vector>

#include "autograd/grad_mode.h"
#include "core/ops/reduce/reduce.h"
#include "dist/group/process_group.h"
#include "train/evaluating.h"

namespace lockstep::train {

namespace {

/// A rank's message to all others after a batch.
struct Told {
  BatchScore score;
  bool stopped = false;
};

/// Gathers the messages of all ranks, in rank order. Each is sent as four int64 words; the loss is
/// bit-cast, so that it arrives exactly.
std::vector<Told> exchange(dist::ProcessGroup* group, const Told& own) {
  if (group == nullptr) return {own};
  using Words = std::array<int64_t, 4>;
  const auto count = static_cast<int64_t>(Words().size());
  const Tensor mine = empty_tensor({count}, DType::kI64);
  const Tensor all = empty_tensor({group->size() * count}, DType::kI64);
  std::ranges::copy(Words{std::bit_cast<int64_t>(own.score.loss), own.score.targets,
                          own.score.correct, own.stopped ? 1 : 0},
                    mine.data<int64_t>());
  group->all_gather(all, mine).wait();
  std::vector<Told> told;
  for (int rank = 0; rank < group->size(); ++rank) {
    const int64_t* const words = all.data<int64_t>() + rank * count;
    told.push_back({{std::bit_cast<double>(words[0]), words[1], words[2]}, words[3] != 0});
  }
  return told;
}

}  // namespace

double Evaluation::bits_per_byte() const {
  if (bytes_per_target == 0) return std::numeric_limits<double>::quiet_NaN();
  return loss / std::numbers::ln2 / bytes_per_target;
}

std::optional<BatchScore> sum_of_batches(int64_t batches, const HeldOutPart& part,
                                         const std::function<BatchScore(int64_t batch)>& score) {
  const int64_t used = part.max_batches > 0 ? std::min(part.max_batches, batches) : batches;
  const int64_t ranks = part.group == nullptr ? 1 : part.group->size();
  const int64_t rank = part.group == nullptr ? 0 : part.group->rank();
  BatchScore sum;
  // Ranks exchange scores after every round of one batch each, so that a stop request on one rank
  // ends the loop on all ranks in the same round.
  for (int64_t first = 0; first < used; first += ranks) {
    Told own{.stopped = part.stop && part.stop()};
    const bool has_one = first + rank < used;
    if (part.in_step || (!own.stopped && has_one)) {
      own.score = score(std::min(first + rank, used - 1) * batches / used);
    }
    const std::vector<Told> round = exchange(part.group, own);
    if (std::ranges::any_of(round, &Told::stopped)) return std::nullopt;
    for (int64_t i = 0; i < std::min(ranks, used - first); ++i) {
      const BatchScore& each = round[static_cast<size_t>(i)].score;
      sum.loss += each.loss;
      sum.targets += each.targets;
      sum.correct += each.correct;
    }
  }
  return sum;
}

std::optional<Evaluation> evaluate(nn::LanguageModel& model, const TokenSource& source,
                                   const EvaluationOptions& options) {
  const NoGradGuard no_grad;
  const Device device = model.device();
  const DefaultDeviceGuard on_device(device);
  const Evaluating evaluating(model);
  const int64_t windows = source.validation_windows(options.length);
  const int64_t batches = (windows + options.rows - 1) / options.rows;
  const Tensor inputs = empty_tensor({options.rows, options.length}, DType::kI64);
  const Tensor targets = empty_tensor({options.rows, options.length}, DType::kI64);
  const auto span = [](const Tensor& tensor) {
    return std::span(tensor.data<int64_t>(), static_cast<size_t>(tensor.numel()));
  };
  const auto sum = sum_of_batches(batches, options.part, [&](int64_t batch) {
    BatchScore score;
    score.targets =
        fill_validation(source, batch * options.rows, options.length, span(inputs), span(targets));
    std::vector<int64_t> documents;
    if (options.within_documents) {
      documents =
          documents_of_validation(source, batch * options.rows, options.rows, options.length);
    }
    score.loss = nn::sum_of_losses(model, inputs.to(device), targets.to(device), {}, documents)
                     .item<double>();
    return score;
  });
  if (!sum) return std::nullopt;
  Evaluation result;
  result.bytes_per_target = source.held_out_bytes_per_token();
  result.targets = sum->targets;
  result.loss = sum->loss / static_cast<double>(std::max<int64_t>(sum->targets, 1));
  return result;
}

}  // namespace lockstep::train
