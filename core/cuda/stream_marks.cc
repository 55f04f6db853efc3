#include "core/cuda/stream_marks.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cuda/error.h"

namespace lockstep::cuda {

std::string text_of(Queued what) {
  switch (what) {
    case kNothing:
      return "nothing that is known here";
    case kCopy:
      return "a copy";
    case kReplay:
      return "the replay of a graph";
    case kLibrary:
      return "the work of a library, as cuBLASLt, cuDNN or NCCL";
    case kImageKernel:
      return "a kernel of a plugin";
  }
  const std::vector<Kernel> kernels = Kernel::all();
  return what <= kernels.size() ? fmt::format("kernel {}", kernels[what - 1].name()) : "a kernel";
}

StreamMarks::~StreamMarks() { clear(); }

void StreamMarks::mark() {
  const std::map<int32_t, uint64_t> before = std::exchange(marked_, {});
  streams_.each_own([&](int32_t id, CUstream stream) {
    const auto known = before.find(id);
    const uint64_t noted = noted_on(id).load(std::memory_order_relaxed);
    const bool is_new = noted != (known == before.end() ? 0 : known->second);
    if (!is_new || marks_.contains(id)) {
      if (known != before.end()) marked_.insert(*known);
      return;
    }
    const Mark mark{events_.acquire(/*timing=*/false), made_++, static_cast<Queued>(noted % kOnce)};
    marked_[id] = noted;
    marks_.emplace(id, mark);
    const ContextGuard guard(context_);
    LS_CUDA(context_.driver(), cuEventRecord, mark.event->native, stream);
  });
}

StreamMarks::Look StreamMarks::look() {
  for (auto at = marks_.begin(); at != marks_.end();) {
    const ContextGuard guard(context_);
    const CUresult result = context_.driver().cuEventQuery(at->second.event->native);
    if (result == CUDA_ERROR_NOT_READY) {
      ++at;
      continue;
    }
    check(context_.driver(), result, "cuEventQuery");
    events_.release(at->second.event);
    at = marks_.erase(at);
    ++reached_;
  }
  Look look{.reached = reached_};
  const auto oldest =
      std::ranges::min_element(marks_, {}, [](const auto& mark) { return mark.second.number; });
  if (oldest != marks_.end()) {
    look.stream = oldest->first;
    look.before = oldest->second.before;
    look.last =
        static_cast<Queued>(noted_on(oldest->first).load(std::memory_order_relaxed) % kOnce);
  }
  return look;
}

void StreamMarks::clear() noexcept {
  for (const auto& [id, mark] : marks_) events_.release(mark.event);
  marks_.clear();
}

}  // namespace lockstep::cuda
