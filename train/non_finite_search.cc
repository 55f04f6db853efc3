#include "train/non_finite_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/ops/factory/copy.h"
#include "dist/group/agreement.h"

namespace lockstep::train {

namespace {

/// Counts of the non-finite elements of an f32 tensor.
struct Census {
  int64_t nans = 0;
  int64_t infinities = 0;
  double largest = 0;  ///< largest magnitude of the finite elements

  bool is_finite() const { return nans + infinities == 0; }
};

Census census(const Tensor& tensor) {
  const NoGradGuard no_grad;
  const Tensor here = tensor.detach().to(kCPU).contiguous();
  const auto* const values = here.data<float>();
  Census result;
  for (int64_t i = 0; i < here.numel(); ++i) {
    if (std::isnan(values[i])) {
      ++result.nans;
    } else if (std::isinf(values[i])) {
      ++result.infinities;
    } else {
      result.largest = std::max(result.largest, std::abs(static_cast<double>(values[i])));
    }
  }
  return result;
}

/// "17 NaN", "3 infinities", "17 NaN and 3 infinities".
std::string words(const Census& census) {
  const std::string nans = fmt::format("{} NaN", census.nans);
  const std::string infinities =
      fmt::format("{} {}", census.infinities, census.infinities == 1 ? "infinity" : "infinities");
  if (census.infinities == 0) return nans;
  return census.nans == 0 ? infinities : nans + " and " + infinities;
}

/// A rank's message to the others, sent as text: the largest element, a space, the finding.
struct Message {
  double largest = 0;
  std::string finding;
};

std::string pack(const Message& message) {
  return fmt::format("{} {}", message.largest, message.finding);
}

Message unpack(const std::string& text) {
  Message message;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, message.largest);
  message.finding.assign(number.ptr + 1, end);  // behind the space
  return message;
}

}  // namespace

NonFiniteSearch::NonFiniteSearch(std::vector<dist::NamedTensor> parameters, int64_t micro_batches)
    : parameters_(std::move(parameters)), micro_batches_(micro_batches) {}

void NonFiniteSearch::look_at_parameters() {
  for (const dist::NamedTensor& each : parameters_) {
    if (found()) return;
    const Census values = census(each.tensor);
    if (!values.is_finite()) {
      what_ = fmt::format("parameter {} itself holds {}", each.name, words(values));
    }
  }
}

void NonFiniteSearch::look_at(int64_t micro_batch, double loss,
                              const std::vector<Tensor>& gradients) {
  if (found()) return;
  const std::string place = fmt::format("micro-batch {} of {}", micro_batch + 1, micro_batches_);
  if (!std::isfinite(loss)) {
    what_ = std::isnan(loss) ? "loss is NaN" : "loss is infinite";
    where_ = fmt::format(" ({})", place);
    return;
  }
  double largest = 0;
  size_t others = 0;
  for (size_t i = gradients.size(); i-- > 0;) {
    if (!gradients[i].defined()) continue;
    const Census values = census(gradients[i]);
    largest = std::max(largest, values.largest);
    if (values.is_finite()) continue;
    if (found()) {
      ++others;
    } else {
      what_ = fmt::format("gradient of {} has {}", parameters_[i].name, words(values));
    }
  }
  largest_ += largest;
  if (!found()) return;
  where_ = others == 0 ? fmt::format(" ({})", place)
                       : fmt::format(" ({}, in which {} other gradient{} not finite either)", place,
                                     others, others == 1 ? " is" : "s are");
}

void NonFiniteSearch::give_up(const std::string& why) {
  if (found()) return;
  what_ = "the step could not be computed again";
  where_ = ": " + why;
}

std::string NonFiniteSearch::conclusion(dist::ProcessGroup* group) const {
  const std::string rank = group == nullptr ? "" : fmt::format(" on rank {}", group->rank());
  const Message own{largest_, found() ? what_ + rank + where_ : ""};
  std::vector<std::string> texts = {pack(own)};
  if (group != nullptr) texts = dist::all_gather_texts(*group, texts[0]);

  constexpr size_t kNamed = 3;  // findings in the message, which should stay readable
  std::string all;
  size_t ranks = 0;
  double largest = 0;
  for (const std::string& text : texts) {
    const Message message = unpack(text);
    largest += message.largest;
    if (message.finding.empty() || ranks++ >= kNamed) continue;
    all += (all.empty() ? "" : "; ") + message.finding;
  }
  if (ranks > kNamed) all += fmt::format("; and something on {} ranks more", ranks - kNamed);
  if (ranks > 0) return all;
  if (largest > std::numeric_limits<float>::max()) {
    return fmt::format(
        "each loss and gradient is finite by itself; only their sum overflows, with elements of up "
        "to {:.1e}",
        largest);
  }
  return "computed again, every loss and gradient is finite: memory or processor of a rank may be "
         "at fault";
}

std::string non_finite_sums(const std::vector<dist::NamedTensor>& parameters,
                            const std::vector<Tensor>& gradients) {
  for (size_t i = gradients.size(); i-- > 0;) {
    const Census values = census(gradients[i]);
    if (values.is_finite()) continue;
    return fmt::format("gradient of {} has {}, summed over all ranks", parameters[i].name,
                       words(values));
  }
  return "";
}

}  // namespace lockstep::train
