#include <fmt/ranges.h>

#include "core/base/check.h"
#include "train/bisect/bisect.h"

namespace lockstep::train {
namespace {

std::string place_of(const OperatorDifference& found) {
  std::string text = fmt::format("step {}, ", found.part.step + 1);
  if (found.rank) text += fmt::format("rank {}, ", *found.rank);
  if (!found.part.micro_batch) return text + "behind the micro-batches: sums and update";
  text += fmt::format("micro-batch {} (of 0 to {}), leaf {}, {}", *found.part.micro_batch,
                      found.micro_batches - 1, found.leaf.value_or(0), found.phase);
  return found.module.empty() ? text : fmt::format("{} of {}", text, found.module);
}

std::string values_of(const ElementDifference& element, const std::string& a,
                      const std::string& b) {
  const size_t width = std::max(a.size(), b.size());
  std::string text;
  if (element.differing > 0) {
    text = fmt::format("result {}, {}: element {} at [{}], the first of {} that differ (of {})\n",
                       element.tensor, element.type, element.element,
                       fmt::join(element.index, ", "), element.differing, element.elements);
  }
  return text +
         fmt::format("  {:<{}}  {}\n  {:<{}}  {}\n", a, width, element.a, b, width, element.b);
}

std::string text_of(const OperatorDifference& found, const RecordedRun& a, const RecordedRun& b) {
  std::string text = fmt::format("first operator that differs: {}\n", found.operator_name);
  text += place_of(found) + "\n";
  if (!found.operator_of_b.empty()) {
    return text + fmt::format("the runs make other calls: {} in {}, {} in {}\n",
                              found.operator_name, a.name, found.operator_of_b, b.name);
  }
  text += fmt::format("call {} of {} there\n", found.call, found.operator_name);
  if (!found.element) {
    return text +
           "it gave the same bits when it was computed once more: the operator does not "
           "repeat itself in this process\n";
  }
  text += values_of(*found.element, a.name, b.name);
  if (found.distance > 0) {
    return text +
           fmt::format("that is {:.1e} of the largest number that it writes\n", found.distance);
  }
  return text + (found.inputs.empty()
                     ? "its inputs are the same, bit for bit\n"
                     : fmt::format("its inputs differ: {}\n", fmt::join(found.inputs, ", ")));
}

}  // namespace

std::string describe(const Bisection& found, const RecordedRun& a, const RecordedRun& b) {
  std::string text;
  for (const std::string& note : found.notes) text += note + "\n";
  if (found.identical) {
    text += found.with_tolerance ? "losses and gradient norms are the same within the tolerance\n"
                                 : "losses, gradient norms and weights are the same, bit for bit\n";
  } else if (found.differing_step > 0) {
    text += fmt::format("first differing step: {}\n", found.differing_step);
  } else {
    text += "losses and gradient norms are the same, weights are not\n";
  }
  if (found.replayed == 0) return text;
  const auto step = [](int64_t count) {
    return fmt::format("{} step{}", count, count == 1 ? "" : "s");
  };
  text += fmt::format("replayed {} of each run from {}\n", step(found.replayed),
                      found.from_step == 0
                          ? std::string("the beginning")
                          : fmt::format("the checkpoints of step {}", found.from_step));
  if (found.found) text += text_of(*found.found, a, b);
  for (const UnrepeatedStep& each : found.unrepeated) {
    text += fmt::format("step {} of {} does not repeat: {} {} was recorded, and is {} here\n",
                        each.step, each.run, each.quantity, each.recorded, each.replayed);
  }
  if (found.found) return text;
  if (found.compared > 0) {
    return text + fmt::format("{} calls that both make gave numbers within the tolerance\n",
                              found.compared);
  }
  text += "all operators gave the same bits in both\n";
  if (!found.unrepeated.empty()) {
    text +=
        "what made the runs part is not in their configs: a fault of a machine, or of what one "
        "rank does not do, such as sums over ranks\n";
  }
  return text;
}

}  // namespace lockstep::train
