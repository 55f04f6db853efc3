#include "train/bisect/operator_trace.h"

#include <algorithm>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"

namespace lockstep::train {

ContentHash hash_of(const std::vector<Tensor>& tensors) {
  const NoGradGuard no_grad;
  ContentHasher hasher;
  for (const Tensor& each : tensors) {
    const Tensor here = each.detach().to(kCPU).contiguous();
    hasher.add(static_cast<uint64_t>(here.dtype())).add(static_cast<uint64_t>(here.dim()));
    for (const int64_t size : here.sizes()) hasher.add(static_cast<uint64_t>(size));
    hasher.add(std::span(static_cast<const std::byte*>(here.data()), here.nbytes()));
  }
  return hasher.result();
}

void OperatorTrace::begin_part() {
  parts_.push_back({part(), {}});
  modules_.begin();
}

void OperatorTrace::before(const Call& call, const Stack& stack) {
  parts_.back().calls.push_back(
      {.op = &call.op, .phase = current_phase(), .module = modules_.of(stack), .call = call.call});
}

void OperatorTrace::after(const Call&, const std::vector<Tensor>& written) {
  modules_.wrote(written);
  parts_.back().calls.back().written = hash_of(written);
}

std::vector<TracedPart> OperatorTrace::take() { return std::exchange(parts_, {}); }

std::optional<CallPlace> first_difference(const std::vector<TracedPart>& a,
                                          const std::vector<TracedPart>& b) {
  const size_t parts = std::min(a.size(), b.size());
  for (size_t part = 0; part < parts; ++part) {
    const std::vector<TracedCall>& calls_a = a[part].calls;
    const std::vector<TracedCall>& calls_b = b[part].calls;
    for (size_t i = 0; i < std::max(calls_a.size(), calls_b.size()); ++i) {
      const bool same_operator =
          i < calls_a.size() && i < calls_b.size() && calls_a[i].op == calls_b[i].op;
      if (same_operator && calls_a[i].written == calls_b[i].written) continue;
      return CallPlace{part, i, same_operator};
    }
  }
  if (a.size() != b.size()) return CallPlace{parts, 0, false};
  return std::nullopt;
}

}  // namespace lockstep::train
